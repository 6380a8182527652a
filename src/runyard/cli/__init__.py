"""The command line.

One file a command: it parses, calls another room, and prints. Owns the table of commands, how
errors look, and exit codes. May import every room; no room imports it.
"""
