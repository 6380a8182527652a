"""Streams of numbered lines: a run's history, its system events, its client's console.

A batch says where it begins. Sent again, it changes nothing; overlapping, the newer text of a line
wins; jumping ahead, it leaves a gap that a later batch may fill. So a client's retries, in whatever
order and however often, end with each line exactly once.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator, Sequence

# One is plenty: JSON lines of the same keys shrink five-fold, at a third of level six's time.
_LEVEL = 1


def put_lines(
    connection: sqlite3.Connection, run: int, stream: str, start: int, lines: Sequence[str]
) -> None:
    """Make `lines` the text of lines `start`, `start + 1`, ..."""
    if not lines:
        return
    stop = start + len(lines)
    overlapping = connection.execute(
        "SELECT start, stop, data FROM lines "
        "WHERE run = ? AND stream = ? AND start < ? AND stop > ?",
        (run, stream, stop, start),
    ).fetchall()
    for row in overlapping:
        _cut_out(connection, run, stream, row, start, stop)
    _insert(connection, run, stream, start, lines)


def get_lines(connection: sqlite3.Connection, run: int, stream: str) -> Iterator[tuple[int, str]]:
    """Every line with its number, in order."""
    rows = connection.execute(
        "SELECT start, data FROM lines WHERE run = ? AND stream = ? ORDER BY start", (run, stream)
    )
    for row in rows:
        yield from enumerate(_unpack(row["data"]), row["start"])


def count_lines(connection: sqlite3.Connection, run: int, stream: str) -> int:
    """The number that the next line will have: gaps count."""
    row = connection.execute(
        "SELECT max(stop) FROM lines WHERE run = ? AND stream = ?", (run, stream)
    ).fetchone()
    return row[0] or 0


def last_line(connection: sqlite3.Connection, run: int, stream: str) -> str | None:
    row = connection.execute(
        "SELECT data FROM lines WHERE run = ? AND stream = ? ORDER BY start DESC LIMIT 1",
        (run, stream),
    ).fetchone()
    return None if row is None else _unpack(row["data"])[-1]


def _cut_out(
    connection: sqlite3.Connection, run: int, stream: str, row: sqlite3.Row, start: int, stop: int
) -> None:
    """Remove lines `start` to `stop` from a stored batch, keeping what is before and after."""
    connection.execute(
        "DELETE FROM lines WHERE run = ? AND stream = ? AND start = ?", (run, stream, row["start"])
    )
    if start <= row["start"] and row["stop"] <= stop:
        return
    lines = _unpack(row["data"])
    if row["start"] < start:
        _insert(connection, run, stream, row["start"], lines[: start - row["start"]])
    if stop < row["stop"]:
        _insert(connection, run, stream, stop, lines[stop - row["start"] :])


def _insert(
    connection: sqlite3.Connection, run: int, stream: str, start: int, lines: Sequence[str]
) -> None:
    # Clients may send lone surrogates; they come back as they were.
    packed = zlib.compress("\n".join(lines).encode(errors="surrogatepass"), _LEVEL)
    connection.execute(
        "INSERT INTO lines (run, stream, start, stop, data) VALUES (?, ?, ?, ?, ?)",
        (run, stream, start, start + len(lines), packed),
    )


def _unpack(data: bytes) -> list[str]:
    return zlib.decompress(data).decode(errors="surrogatepass").split("\n")
