"""Streams of numbered lines: what the clients of a run printed. (`history` does it in columns.)

A batch says where it begins. Sent again, it changes nothing; overlapping, the newer text of a line
wins; jumping ahead, it leaves a gap that a later batch may fill. So a client's retries, in whatever
order and however often, end with each line exactly once.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from sqlite3 import Connection

from runyard.server.store.sql import fetch_number

# One is plenty: JSON lines of the same keys shrink five-fold, at a third of level six's time.
_LEVEL = 1


def put_lines(db: Connection, run: int, stream: str, start: int, lines: Sequence[str]) -> None:
    """Make `lines` the text of lines `start`, `start + 1`, ... None holds a line feed."""
    if not lines:
        return
    stop = start + len(lines)
    # Stored batches do not overlap, so only the last that begins before us can reach into us;
    # without that, every post would look at every batch of its run.
    overlapping = db.execute(
        "SELECT start, stop, data FROM lines WHERE run = ? AND stream = ? "
        "AND start >= ? AND start < ? AND stop > ?",
        (run, stream, _batch_before(db, run, stream, start), stop, start),
    ).fetchall()
    for row in overlapping:
        _cut_out(db, run, stream, row, start, stop)
    _insert(db, run, stream, start, lines)


def get_lines(db: Connection, run: int, stream: str, first: int = 0) -> Iterator[tuple[int, str]]:
    """Every line from number `first` on with its number, in order."""
    rows = db.execute(
        "SELECT start, data FROM lines WHERE run = ? AND stream = ? AND start >= ? ORDER BY start",
        (run, stream, _batch_before(db, run, stream, first)),
    )
    for row in rows:
        skipped = max(0, first - row["start"])
        yield from enumerate(_unpack(row["data"])[skipped:], row["start"] + skipped)


def count_lines(db: Connection, run: int, stream: str) -> int:
    """The number that the next line will have: gaps count."""
    row = db.execute(
        "SELECT stop FROM lines WHERE run = ? AND stream = ? ORDER BY start DESC LIMIT 1",
        (run, stream),
    ).fetchone()
    return 0 if row is None else row[0]


def _batch_before(db: Connection, run: int, stream: str, line: int) -> int:
    """Where the last batch begins that begins at `line` or before it."""
    return fetch_number(
        db,
        "SELECT coalesce(max(start), 0) FROM lines WHERE run = ? AND stream = ? AND start <= ?",
        (run, stream, line),
    )


def _cut_out(
    db: Connection, run: int, stream: str, row: sqlite3.Row, start: int, stop: int
) -> None:
    """Remove lines `start` to `stop` from a stored batch, keeping what is before and after."""
    db.execute(
        "DELETE FROM lines WHERE run = ? AND stream = ? AND start = ?", (run, stream, row["start"])
    )
    if start <= row["start"] and row["stop"] <= stop:
        return
    lines = _unpack(row["data"])
    if row["start"] < start:
        _insert(db, run, stream, row["start"], lines[: start - row["start"]])
    if stop < row["stop"]:
        _insert(db, run, stream, stop, lines[stop - row["start"] :])


def _insert(db: Connection, run: int, stream: str, start: int, lines: Sequence[str]) -> None:
    # Clients may send lone surrogates; they come back as they were.
    packed = zlib.compress("\n".join(lines).encode(errors="surrogatepass"), _LEVEL)
    db.execute(
        "INSERT INTO lines (run, stream, start, stop, data) VALUES (?, ?, ?, ?, ?)",
        (run, stream, start, start + len(lines), packed),
    )


def _unpack(data: bytes) -> list[str]:
    return zlib.decompress(data).decode(errors="surrogatepass").split("\n")
