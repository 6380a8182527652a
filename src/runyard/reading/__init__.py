"""Turns text that people write into typed data.

Owns YAML and JSON documents that remember their lines, the kinds of values in them (lengths of
time, amounts of memory, words to choose from), records made of these, and problems with a place and
a mend. On the ground floor: every room may import it, and it imports none.
"""
