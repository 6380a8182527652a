"""What runs beside the user's program.

Owns the attempt: its process, signals, terminal and console; and what else happens inside a job.
Standard library only, since five hundred of these may start at once from one parallel file
system. May import `train` and `client`, which are as light.
"""
