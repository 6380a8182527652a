"""Text that people write, into typed data.

Owns YAML and JSON documents that remember their lines, the kinds of values that can stand in them
(lengths of time, amounts of memory, words to choose from), records made of these, and the problems
that are told with a place and a mend. On the ground floor: every room may import it, and it imports
none.
"""
