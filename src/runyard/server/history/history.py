"""A run's numbered rows, in columns: what it logged, and its system events.

Rows come in batches, each stored as one columnar blob; a batch says where it begins. Sent again it
changes nothing, overlapping it replaces, jumping ahead it leaves a gap that may be filled. In the
background batches are joined to segments: one blob a key, with coarser levels for drawing (see
`segments`). Reads put both together.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from sqlite3 import Connection
from typing import Any

from runyard.server.history import pieces, segments
from runyard.server.history.columns import Column, decode, encode, keys_in, merge, to_rows
from runyard.server.history.metric_keys import key_reader, number_keys

HISTORY, EVENTS = 0, 1
STREAMS = {"history": HISTORY, "events": EVENTS}


def stream_of(archive: int, stream: int) -> int:
    """Where an archive keeps a stream's rows; the run's own are as in archive 0."""
    return 2 * archive + stream


def put_rows(db: Connection, run: int, stream: int, start: int, lines: Sequence[str]) -> None:
    """Make `lines` the rows `start`, `start + 1`, ..."""
    if not lines:
        return
    stop = start + len(lines)
    blob = encode(lines, lambda names: number_keys(db, names))
    if start < count_rows(db, run, stream):
        if _is_there(db, run, stream, start, stop, blob):
            return
        cut_rows(db, run, stream, start, stop)
    pieces.store(db, run, stream, pieces.Piece(start, stop, blob))


def _is_there(db: Connection, run: int, stream: int, start: int, stop: int, blob: bytes) -> bool:
    """Whether these very rows are stored: most that come again are, and a look is cheaper."""
    columns = [
        pieces.between(column, start, stop)
        for extent in pieces.extents(db, run, stream, start, stop)
        for column in pieces.columns_of(db, run, stream, extent)
    ]
    return _contents(columns) == _contents(decode(blob, start))


def _contents(columns: Iterable[Column]) -> dict[tuple[int, int], tuple[bytes, object]]:
    return {
        (column.key, column.kind): (
            column.lines.tobytes(),
            column.values if isinstance(column.values, list) else column.values.tobytes(),
        )
        for column in merge(columns)
        if len(column.lines)
    }


def count_rows(db: Connection, run: int, stream: int) -> int:
    """The number that the next row will have: gaps count."""
    row = db.execute(
        "SELECT max(stop) FROM (SELECT * FROM (SELECT stop FROM batches WHERE run = :run AND "
        "stream = :stream ORDER BY start DESC LIMIT 1) UNION ALL SELECT * FROM (SELECT stop FROM "
        "segments WHERE run = :run AND stream = :stream ORDER BY start DESC LIMIT 1))",
        {"run": run, "stream": stream},
    ).fetchone()
    return row[0] or 0


def cut_rows(db: Connection, run: int, stream: int, start: int, stop: int | None = None) -> None:
    """Remove rows `start` to `stop` (to the end, if None)."""
    bound = 2**62 if stop is None else stop
    for extent in pieces.extents(db, run, stream, start, bound):
        left: list[pieces.Piece] = []
        if extent.start < start or bound < extent.stop:
            columns = pieces.columns_of(db, run, stream, extent)
            for first, last in ((0, start), (bound, 2**62)):
                part = [pieces.between(column, first, last) for column in columns]
                left += pieces.remake(db, extent, part)
        pieces.replace(db, run, stream, [extent], left)


def read_rows(
    db: Connection, run: int, stream: int, start: int = 0, stop: int | None = None
) -> Iterator[tuple[int, str]]:
    for number, row in read_objects(db, run, stream, start, stop):
        yield number, row if isinstance(row, str) else json.dumps(row, separators=(",", ":"))


def read_objects(
    db: Connection,
    run: int,
    stream: int,
    start: int = 0,
    stop: int | None = None,
    keys: frozenset[int] | None = None,
) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """Rows with their numbers, as objects; of some keys only, if those are given."""
    bound = 2**62 if stop is None else stop
    name_of = key_reader(db)
    for columns in _pieces(db, run, stream, start, bound, keys):
        # A row is dear to put together: only those that are wanted.
        wanted = [pieces.between(column, start, bound) for column in columns]
        yield from to_rows(wanted, name_of).items()


def read_columns(db: Connection, run: int, stream: int, keys: frozenset[int]) -> list[Column]:
    """Whole columns of some keys, in the order of rows."""
    pieces = _pieces(db, run, stream, 0, 2**62, keys)
    return [column for columns in pieces for column in columns]


def keys_of_run(db: Connection, run: int, stream: int) -> set[int]:
    keys = segments.keys(db, run, stream)
    for row in db.execute("SELECT data FROM batches WHERE run = ? AND stream = ?", (run, stream)):
        keys |= keys_in(row["data"])
    return keys


def last_row(db: Connection, run: int, stream: int) -> str | None:
    count = count_rows(db, run, stream)
    if count == 0:
        return None
    return next((line for _, line in read_rows(db, run, stream, count - 1)), None)


def _pieces(
    db: Connection, run: int, stream: int, start: int, stop: int, keys: frozenset[int] | None
) -> Iterator[list[Column]]:
    """Columns, batch by batch and segment by segment, in the order of rows."""
    for extent in pieces.extents(db, run, stream, start, stop):
        yield pieces.columns_of(db, run, stream, extent, keys)


def count_rows_of(db: Connection, runs: Sequence[int], stream: int) -> dict[int, int]:
    """`count_rows` for many runs at once."""
    return {run: count_rows(db, run, stream) for run in runs}


def put_shared_rows(
    db: Connection, run: int, stream: int, writer: str, start: int, lines: Sequence[str]
) -> None:
    """Rows of one writer: those that came before are replaced in place, new ones go to the end."""
    position = start
    stop = start + len(lines)
    while position < stop:
        known = db.execute(
            "SELECT start, stop, place FROM placements WHERE run = ? AND stream = ? "
            "AND writer = ? AND stop > ? AND start < ? ORDER BY start LIMIT 1",
            (run, stream, writer, position, stop),
        ).fetchone()
        if known is None or known["start"] > position:
            end = stop if known is None else min(stop, known["start"])
            place = count_rows(db, run, stream)
            _remember(db, run, stream, writer, position, end, place)
        else:
            end = min(stop, known["stop"])
            place = known["place"] + position - known["start"]
        put_rows(db, run, stream, place, lines[position - start : end - start])
        position = end


def _remember(
    db: Connection, run: int, stream: int, writer: str, start: int, stop: int, place: int
) -> None:
    grown = db.execute(
        "UPDATE placements SET stop = ? WHERE run = ? AND stream = ? AND writer = ? AND stop = ? "
        "AND place + stop - start = ?",
        (stop, run, stream, writer, start, place),
    )
    if grown.rowcount == 0:
        db.execute(
            "INSERT INTO placements (run, stream, writer, start, stop, place) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            (run, stream, writer, start, stop, place),
        )
