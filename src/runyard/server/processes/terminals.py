"""A line as a terminal shows it in the end, whatever was drawn over what."""

from __future__ import annotations

import re

# Colours and the like change nothing about the text; the others move, or erase.
_SEQUENCE = re.compile(r"\x1b\[([0-9;?]*)([@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]")
_TO_DRAW = re.compile(r"[\r\b\x1b]")


def as_seen(line: str) -> str:
    """The text that is left of a line with carriage returns, backspaces and escape sequences."""
    if not _TO_DRAW.search(line):
        return line
    cells: list[str] = []
    column = place = 0
    while place < len(line):
        letter = line[place]
        found = _SEQUENCE.match(line, place) if letter == "\x1b" else None
        if found is not None:
            column = _move(cells, column, found)
            place = found.end()
            continue
        place += 1
        if letter == "\r":
            column = 0
        elif letter == "\b":
            column = max(0, column - 1)
        elif letter != "\x1b":
            cells += [" "] * (column - len(cells))
            cells[column : column + 1] = [letter]
            column += 1
    return "".join(cells).rstrip(" ")


def _move(cells: list[str], column: int, sequence: re.Match[str]) -> int:
    """What a sequence does to a line of text; where the cursor is afterwards."""
    given, kind = sequence.group(1) or "", sequence.group(2)
    # No terminal is wider than this, whatever a program asks for.
    number = min(int(given), 10_000) if given.isdigit() else None
    if kind == "K":
        if number in (1, 2):
            cells[:column] = [" "] * min(column, len(cells))
        if number in (None, 0, 2):
            del cells[column:]
    elif kind == "C":
        return column + (number or 1)
    elif kind == "D":
        return max(0, column - (number or 1))
    elif kind == "G":
        return max(0, (number or 1) - 1)
    return column
