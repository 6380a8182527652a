"""A run's numbered rows, in columns: what it logged, and its system events.

Rows come in batches, each stored as one columnar blob; a batch says where it begins. Sent again it
changes nothing, overlapping it replaces, jumping ahead it leaves a gap that may be filled. In the
background batches are joined to segments: one blob a key, with coarser levels for drawing (see
`segments`). Reads put both together.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

from runyard.server.store import segments
from runyard.server.store.columns import Column, decode, encode, keys_in, to_rows
from runyard.server.store.keys import key_reader, number_keys

HISTORY, EVENTS = 0, 1


def put_rows(
    connection: sqlite3.Connection, run: int, stream: int, start: int, lines: Sequence[str]
) -> None:
    """Make `lines` the rows `start`, `start + 1`, ..."""
    if not lines:
        return
    stop = start + len(lines)
    if start < count_rows(connection, run, stream):
        cut_rows(connection, run, stream, start, stop)
    _insert(connection, run, stream, start, lines)


def count_rows(connection: sqlite3.Connection, run: int, stream: int) -> int:
    """The number that the next row will have: gaps count."""
    row = connection.execute(
        "SELECT max(stop) FROM (SELECT * FROM (SELECT stop FROM batches WHERE run = :run AND "
        "stream = :stream ORDER BY start DESC LIMIT 1) UNION ALL SELECT * FROM (SELECT stop FROM "
        "segments WHERE run = :run AND stream = :stream ORDER BY start DESC LIMIT 1))",
        {"run": run, "stream": stream},
    ).fetchone()
    return row[0] or 0


def cut_rows(
    connection: sqlite3.Connection, run: int, stream: int, start: int, stop: int | None = None
) -> None:
    """Remove rows `start` to `stop` (to the end, if None)."""
    bound = 2**62 if stop is None else stop
    for table in ("batches", "segments"):
        overlapping = connection.execute(
            f"SELECT start, stop FROM {table} "  # noqa: S608
            "WHERE run = ? AND stream = ? AND start < ? AND stop > ?",
            (run, stream, bound, start),
        ).fetchall()
        for row in overlapping:
            kept = []
            if row["start"] < start or bound < row["stop"]:
                kept = [
                    (number, line)
                    for number, line in read_rows(
                        connection, run, stream, row["start"], row["stop"]
                    )
                    if number < start or number >= bound
                ]
            connection.execute(
                f"DELETE FROM {table} WHERE run = ? AND stream = ? AND start = ?",  # noqa: S608
                (run, stream, row["start"]),
            )
            if table == "segments":
                segments.remove(connection, run, stream, row["start"])
            for first, lines in _stretches(kept):
                _insert(connection, run, stream, first, lines)


def read_rows(
    connection: sqlite3.Connection,
    run: int,
    stream: int,
    start: int = 0,
    stop: int | None = None,
) -> Iterator[tuple[int, str]]:
    """Rows with their numbers, as JSON, in order."""
    for number, row in read_objects(connection, run, stream, start, stop):
        yield number, row if isinstance(row, str) else json.dumps(row, separators=(",", ":"))


def read_objects(
    connection: sqlite3.Connection,
    run: int,
    stream: int,
    start: int = 0,
    stop: int | None = None,
    keys: frozenset[int] | None = None,
) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """Rows with their numbers, as objects; of some keys only, if those are given."""
    bound = 2**62 if stop is None else stop
    name_of = key_reader(connection)
    for columns in _pieces(connection, run, stream, start, bound, keys):
        for number, row in to_rows(columns, name_of).items():
            if start <= number < bound:
                yield number, row


def read_columns(
    connection: sqlite3.Connection, run: int, stream: int, keys: frozenset[int]
) -> list[Column]:
    """Whole columns of some keys, in the order of rows."""
    pieces = _pieces(connection, run, stream, 0, 2**62, keys)
    return [column for columns in pieces for column in columns]


def keys_of_run(connection: sqlite3.Connection, run: int, stream: int) -> set[int]:
    found = segments.keys(connection, run, stream)
    for row in connection.execute(
        "SELECT data FROM batches WHERE run = ? AND stream = ?", (run, stream)
    ):
        found |= keys_in(row["data"])
    return found


def last_row(connection: sqlite3.Connection, run: int, stream: int) -> str | None:
    count = count_rows(connection, run, stream)
    if count == 0:
        return None
    return next((line for _, line in read_rows(connection, run, stream, count - 1)), None)


def _pieces(
    connection: sqlite3.Connection,
    run: int,
    stream: int,
    start: int,
    stop: int,
    keys: frozenset[int] | None,
) -> Iterator[list[Column]]:
    """Columns, batch by batch and segment by segment, in the order of rows."""
    places = connection.execute(
        "SELECT start, 0 AS joined FROM batches "
        "WHERE run = :run AND stream = :stream AND start < :stop AND stop > :start UNION ALL "
        "SELECT start, 1 FROM segments "
        "WHERE run = :run AND stream = :stream AND start < :stop AND stop > :start ORDER BY start",
        {"run": run, "stream": stream, "start": start, "stop": stop},
    ).fetchall()
    for place in places:
        if place["joined"]:
            yield segments.read(connection, run, stream, place["start"], keys)
        else:
            data = connection.execute(
                "SELECT data FROM batches WHERE run = ? AND stream = ? AND start = ?",
                (run, stream, place["start"]),
            ).fetchone()["data"]
            yield decode(data, place["start"], keys)


def _insert(
    connection: sqlite3.Connection, run: int, stream: int, start: int, lines: Sequence[str]
) -> None:
    data = encode(lines, lambda names: number_keys(connection, names))
    connection.execute(
        "INSERT INTO batches (run, stream, start, stop, data) VALUES (?, ?, ?, ?, ?)",
        (run, stream, start, start + len(lines), data),
    )


def _stretches(rows: list[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
    """Rows in a row: where each stretch begins, and its lines."""
    lines: list[str] = []
    first = 0
    for number, line in rows:
        if lines and number != first + len(lines):
            yield first, lines
            lines = []
        if not lines:
            first = number
        lines.append(line)
    if lines:
        yield first, lines


def count_rows_of(
    connection: sqlite3.Connection, runs: Sequence[int], stream: int
) -> dict[int, int]:
    """`count_rows` for many runs at once."""
    return {run: count_rows(connection, run, stream) for run in runs}
