"""How a command line names standard input in place of a file."""

STANDARD_INPUT = "-"
