"""A run's console in pages, and its lines as a terminal shows them in the end."""

from __future__ import annotations

import codecs
import itertools
import re
from collections import deque
from collections.abc import Iterator
from sqlite3 import Connection
from typing import Any

from runyard.server.processes import attempts, clients
from runyard.server.processes.console_lines import get_lines
from runyard.server.runs import runs, states

_PAGE = 1 << 20
# More than a client sends, and few enough that many clients' places are exact in JSON.
_LINES_EACH = 1 << 32
# The end of what a run printed, for the person who wants to know why it failed.
_QUOTED_LINES, _QUOTED_BYTES = 8, 4096


def read_page(db: Connection, run: int, after: int, size: int = _PAGE) -> dict[str, Any]:
    """The console from `after` on (a byte, or a line of the client's), and where to go on."""
    row = runs.by_key(db, run)
    ended = row is None or row["state"] not in (*states.ALIVE, "pending")
    if attempts.last(db, run) is not None:
        text, following, more = _of_attempts(db, run, after, size, ended)
    else:
        text, following, more = _of_client(db, run, after, size)
    return {"text": text, "next": following, "ended": ended and not more}


def lines_of(db: Connection, run: int) -> Iterator[str]:
    """The console line by line: what clients sent, which has times; or else what runyard saw."""
    sent = clients.console_lines(db, run)
    first = next(sent, None)
    if first is not None:
        yield from itertools.chain([first], sent)
        return
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    place, rest = 0, ""
    while True:
        data, place = attempts.read_console(db, run, place, _PAGE)
        *whole, rest = (rest + decoder.decode(data, final=not data)).split("\n")
        yield from map(as_seen, whole)
        if not data:
            break
    if rest:
        yield as_seen(rest)


def _of_attempts(
    db: Connection, run: int, after: int, size: int, ended: bool
) -> tuple[str, int, bool]:
    data, following = attempts.read_console(db, run, after, size)
    more = len(data) >= size
    # Stop before a character that is cut in two; the next page begins with it.
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data, final=ended and not more)
    return text, following - len(decoder.getstate()[0]), more


def _of_client(db: Connection, run: int, after: int, size: int) -> tuple[str, int, bool]:
    """One client's lines after the other's; a place is a client's turn and a line of its own."""
    streams = clients.console_streams(db, run)
    first, line = divmod(after, _LINES_EACH)
    pieces: list[str] = []
    taken, place = 0, after
    for turn, stream in enumerate(streams[first:], first):
        begin = line if turn == first else 0
        for number, text in get_lines(db, run, stream, begin):
            if taken >= size:
                return "".join(pieces), turn * _LINES_EACH + number, True
            pieces.append(f"{as_seen(split_line(text)[2])}\n")
            taken += len(pieces[-1])
            place = turn * _LINES_EACH + number + 1
    return "".join(pieces), place, False


def split_line(line: str) -> tuple[str, str | None, str]:
    """What a client puts in front of a console line, and the line: level, time, text."""
    text = line.removeprefix("ERROR ")
    stamp, blank, rest = text.partition(" ")
    if blank and len(stamp) >= 19 and stamp[4:5] == "-" and "T" in stamp:
        return ("error" if len(text) < len(line) else ""), stamp, rest
    return "", None, line


def last_words(db: Connection, run: int | None) -> str:
    """The last lines that are not empty; the attempt's console, or what the client sent of it."""
    if run is None:
        return ""
    newest = attempts.last(db, run)
    if newest is not None and newest["console_bytes"]:
        total = sum(row["console_bytes"] for row in attempts.of_run(db, run))
        data, _ = attempts.read_console(db, run, max(0, total - _QUOTED_BYTES), _QUOTED_BYTES)
        lines = data.decode(errors="replace").splitlines()
    else:
        lines = list(deque(clients.console_lines(db, run), _QUOTED_LINES * 4))
    return "\n".join([line.rstrip() for line in lines if line.strip()][-_QUOTED_LINES:])


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
        sequence = _SEQUENCE.match(line, place) if letter == "\x1b" else None
        if sequence is not None:
            column = _move(cells, column, sequence)
            place = sequence.end()
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
    digits, kind = sequence.group(1) or "", sequence.group(2)
    # No terminal is wider than this, whatever a program asks for.
    number = min(int(digits), 10_000) if digits.isdigit() else None
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
