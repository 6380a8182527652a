"""The pieces that a run's rows are stored in, taken out and put back whole.

A piece is a batch (one blob) or a segment (one blob a key and level). Rewinds, forks, joins and
syncs replace some pieces by others. What takes long, reading them and making the new ones, is done
beside the writer; the writer only deletes and inserts, after a look that nothing has changed since.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from sqlite3 import Connection

import numpy as np

from runyard.server.history import segments
from runyard.server.history.columns import Column, Numbers, decode, heads, merge, pack, pick
from runyard.server.history.metric_keys import STEP, known_keys
from runyard.server.store.sql import Pieces
from runyard.server.store.store import Changed, Slice

# Values in one segment: the writer stores so many in some 10 ms.
MOST_VALUES = 250_000


_STORE_BATCHES = f"""
INSERT INTO batches (run, stream, start, stop, data)
SELECT {", ".join(f"json_extract(value, '$[{place}]')" for place in range(4))},
    substr(?, json_extract(value, '$[4]'), json_extract(value, '$[5]'))
FROM json_each(?)
"""


@dataclass(frozen=True)
class Extent:
    """The rows that a piece covers. `blob` is a batch's; a segment has none."""

    start: int
    stop: int
    blob: bytes | None = None


@dataclass(frozen=True)
class Piece(Extent):
    """`series` is a segment's: columns of the table of that name, from `key` on."""

    series: Sequence[segments.Series] = ()


def extents(
    db: Connection, run: int, stream: int, start: int = 0, stop: int = 2**62
) -> list[Extent]:
    rows = db.execute(
        "SELECT start, stop, data FROM batches "
        "WHERE run = :run AND stream = :stream AND start < :stop AND stop > :start UNION ALL "
        "SELECT start, stop, NULL FROM segments "
        "WHERE run = :run AND stream = :stream AND start < :stop AND stop > :start ORDER BY start",
        {"run": run, "stream": stream, "start": start, "stop": stop},
    )
    return [Extent(*row) for row in rows]


def columns_of(
    db: Connection, run: int, stream: int, extent: Extent, keys: frozenset[int] | None = None
) -> list[Column]:
    if extent.blob is not None:
        return decode(extent.blob, extent.start, keys)
    return segments.read(db, run, stream, extent.start, keys)


def load(db: Connection, run: int, stream: int, extent: Extent) -> Piece:
    """All of a piece, as it is stored."""
    rows = db.execute(
        "SELECT key, level, kind, count, lines, data FROM series "
        "WHERE run = ? AND stream = ? AND start = ?",
        (run, stream, extent.start),
    )
    series = () if extent.blob is not None else [tuple(row) for row in rows]
    return Piece(extent.start, extent.stop, extent.blob, series)


def make(db: Connection, columns: Iterable[Column]) -> list[Piece]:
    """Segments that hold these columns, as many as keep each of them small."""
    columns = [column for column in merge(columns) if len(column.lines)]
    if not columns:
        return []
    columns = [_in_order(column) for column in columns]
    step = known_keys(db, [STEP]).get(STEP)
    start = min(int(column.lines[0]) for column in columns)
    stop = max(int(column.lines[-1]) for column in columns) + 1
    count = sum(len(column.lines) for column in columns)
    height = max(1, (stop - start) * MOST_VALUES // count)
    made = []
    for first in range(start, stop, height):
        last = min(first + height, stop)
        part = [between(column, first, last) for column in columns]
        part = [column for column in part if len(column.lines)]
        if part:
            first = min(int(column.lines[0]) for column in part)
            last = max(int(column.lines[-1]) for column in part) + 1
            made.append(Piece(first, last, None, segments.series_of(part, first, step)))
    return made


def remake(db: Connection, extent: Extent, columns: Iterable[Column]) -> list[Piece]:
    """What is left of a piece, or is taken from it: a batch stays a batch, and is joined later."""
    if extent.blob is None:
        return make(db, columns)
    columns = [column for column in columns if len(column.lines)]
    if not columns:
        return []
    start = min(int(column.lines[0]) for column in columns)
    stop = max(int(column.lines[-1]) for column in columns) + 1
    return [Piece(start, stop, pack(columns, start, stop))]


def count_rows_in(db: Connection, run: int, stream: int, extent: Extent) -> int:
    """How many rows a piece has: there may be gaps."""
    height = extent.stop - extent.start
    if extent.blob is not None:
        longest = max(count for _, _, count in heads(extent.blob))
    else:
        longest = db.execute(
            "SELECT max(count) FROM series WHERE run = ? AND stream = ? AND start = ? "
            "AND level = 0",
            (run, stream, extent.start),
        ).fetchone()[0]
    if longest == height:
        return height
    columns = columns_of(db, run, stream, extent)
    return len(np.unique(np.concatenate([column.lines for column in columns])))


def split(columns: Iterable[Column], chosen: Numbers) -> tuple[list[Column], list[Column]]:
    """What stands in these rows, and the rest; `chosen` go upwards."""
    inside, outside = [], []
    for column in columns:
        inside.append(pick(column, chosen))
        outside.append(pick(column, np.setdiff1d(column.lines, chosen, assume_unique=True)))
    return inside, outside


def between(column: Column, start: int, stop: int) -> Column:
    first, last = np.searchsorted(column.lines, (start, stop))
    return Column(column.key, column.kind, column.lines[first:last], column.values[first:last])


def store_batches(db: Connection, batches: Iterable[tuple[int, int, int, int, bytes]]) -> None:
    """Batches of any runs: run, stream, first row, the row after the last, blob."""
    pieces = Pieces()
    places = [(*place, *pieces.add(blob)) for *place, blob in batches]
    if places:
        db.execute(_STORE_BATCHES, (pieces.whole(), json.dumps(places)))


def store(db: Connection, run: int, stream: int, piece: Piece) -> None:
    if piece.blob is not None:
        store_batches(db, [(run, stream, piece.start, piece.stop, piece.blob)])
        return
    db.execute(
        "INSERT INTO segments (run, stream, start, stop) VALUES (?, ?, ?, ?)",
        (run, stream, piece.start, piece.stop),
    )
    db.executemany(
        "INSERT INTO series (run, stream, start, key, level, kind, count, lines, data) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [(run, stream, piece.start, *row) for row in piece.series],
    )


def remove(db: Connection, run: int, stream: int, extent: Extent) -> None:
    _verify(db, run, stream, extent)
    table = "segments" if extent.blob is None else "batches"
    db.execute(
        f"DELETE FROM {table} WHERE run = ? AND stream = ? AND start = ?",
        (run, stream, extent.start),
    )
    if extent.blob is None:
        segments.remove(db, run, stream, extent.start)


def replace(
    db: Connection, run: int, stream: int, extents: Iterable[Extent], made: Iterable[Piece]
) -> None:
    for extent in extents:
        remove(db, run, stream, extent)
    for piece in made:
        store(db, run, stream, piece)


def move(db: Connection, run: int, stream: int, extent: Extent, to: int) -> None:
    """Make a piece one of another stream; its rows keep their numbers."""
    _verify(db, run, stream, extent)
    for table in ("batches",) if extent.blob is not None else ("segments", "series"):
        db.execute(
            f"UPDATE {table} SET stream = ? WHERE run = ? AND stream = ? AND start = ?",
            (to, run, stream, extent.start),
        )


def _verify(db: Connection, run: int, stream: int, extent: Extent) -> None:
    """A segment never changes in place. A batch does, where a client sends other rows again."""
    if extent.blob is None:
        question = "SELECT stop, NULL FROM segments WHERE run = ? AND stream = ? AND start = ?"
    else:
        question = "SELECT stop, data FROM batches WHERE run = ? AND stream = ? AND start = ?"
    row = db.execute(question, (run, stream, extent.start)).fetchone()
    if row is None or tuple(row) != (extent.stop, extent.blob):
        raise Changed(f"rows {extent.start} to {extent.stop} of run {run} have changed")


def _in_order(column: Column) -> Column:
    """By lines: parts that were put together may interleave."""
    if (np.diff(column.lines) > 0).all():
        return column
    order = np.argsort(column.lines, kind="stable")
    if isinstance(column.values, list):
        values: Numbers | list[str] = [column.values[place] for place in order.tolist()]
    else:
        values = column.values[order]
    return Column(column.key, column.kind, column.lines[order], values)


@dataclass
class _Group:
    """Pieces whose rows interleave: they are replaced together."""

    extents: list[Extent]
    numbers: Numbers


def close_gap(db: Connection, run: int, stream: int, first: int) -> Slice | None:
    """Moves rows behind the first gap from `first` on to the lowest free numbers, in their order.

    None if there is no gap. Each slice moves one group of pieces, the first ones first, so that no
    two rows ever have one number.
    """
    free = first
    for group in _groups(db, run, stream, first):
        targets = group.numbers.copy()
        behind = targets >= free
        targets[behind] = free + np.arange(np.count_nonzero(behind))
        if (targets != group.numbers).any():
            return _replace(db, run, stream, group, targets)
        free = int(targets[-1]) + 1
    return None


def _groups(db: Connection, run: int, stream: int, first: int) -> list[_Group]:
    groups: list[_Group] = []
    for extent in extents(db, run, stream, first):
        columns = columns_of(db, run, stream, extent)
        numbers = np.unique(np.concatenate([column.lines for column in columns]))
        if groups and extent.start <= groups[-1].numbers[-1]:
            groups[-1].extents.append(extent)
            groups[-1].numbers = np.union1d(groups[-1].numbers, numbers)
        else:
            groups.append(_Group([extent], numbers))
    return groups


def _replace(db: Connection, run: int, stream: int, group: _Group, targets: Numbers) -> Slice:
    columns = [
        column.at(targets[np.searchsorted(group.numbers, column.lines)])
        for extent in group.extents
        for column in columns_of(db, run, stream, extent)
    ]
    made = make(db, columns)
    low, high = int(targets[0]), int(group.numbers[-1]) + 1

    def close_gap(db: Connection) -> None:
        if extents(db, run, stream, low, high) != group.extents:
            raise Changed(f"rows {low} to {high} of run {run} have changed")
        replace(db, run, stream, group.extents, made)

    return close_gap
