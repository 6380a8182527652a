"""Batches joined: one blob a key for a long stretch of rows, with coarser levels for drawing.

Level 0 holds every value. Levels 1 and 2 hold, for every 10 and 100 values of a key, the line and
the step of the last one, the last value, the smallest and the largest: a chart of any width reads
about as many points as it draws, and no spike gets lost.
"""

from __future__ import annotations

import functools
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from sqlite3 import Connection

import numpy as np

from runyard.server.history.columns import (
    FLOAT,
    INTEGER,
    TRUTH,
    Column,
    Numbers,
    pack_values,
    unpack_values,
)
from runyard.server.store.sql import fetch_number

WIDTHS = {1: 10, 2: 100}
# A segment is made when this many rows or batches wait, and again at the run's end.
ROWS, BATCHES = 20_000, 100

# Columns of the table of that name: key, level, kind, count, lines, data.
Series = tuple[int, int, int, int, bytes | None, bytes]


def due(db: Connection, run: int, stream: int) -> bool:
    row = db.execute(
        "SELECT count(*), coalesce(sum(stop - start), 0) FROM batches WHERE run = ? AND stream = ?",
        (run, stream),
    ).fetchone()
    return bool(row[0] >= BATCHES or row[1] >= ROWS)


def waiting(db: Connection, run: int, stream: int) -> int:
    """How many batches are in no segment yet."""
    return fetch_number(
        db, "SELECT count(*) FROM batches WHERE run = ? AND stream = ?", (run, stream)
    )


def read(
    db: Connection, run: int, stream: int, start: int, wanted: frozenset[int] | None = None
) -> list[Column]:
    """Every value of a segment; of all keys, or of some."""
    if wanted is None:
        rows = db.execute(
            "SELECT * FROM series WHERE run = ? AND stream = ? AND start = ? AND level = 0",
            (run, stream, start),
        ).fetchall()
    else:
        rows = [
            row
            for key in wanted
            for row in db.execute(
                "SELECT * FROM series "
                "WHERE run = ? AND stream = ? AND key = ? AND level = 0 AND start = ?",
                (run, stream, key, start),
            )
        ]
    return [as_column(row) for row in rows]


def as_column(row: sqlite3.Row) -> Column:
    """A row of level 0."""
    return Column(
        row["key"],
        row["kind"],
        _unpack_lines(row["lines"], row["count"], row["start"]),
        unpack_values(row["kind"], row["count"], row["data"]),
    )


def as_table(row: sqlite3.Row) -> Numbers:
    """A row of a coarser level: lines, steps, last, smallest, largest."""
    return np.frombuffer(row["data"], np.float64).reshape(5, row["count"])


def read_level(
    db: Connection, run: int, stream: int, key: int, level: int
) -> list[tuple[int, Numbers]]:
    """A key's coarser tables, each with the start of its segment."""
    rows = db.execute(
        "SELECT start, count, data FROM series "
        "WHERE run = ? AND stream = ? AND key = ? AND level = ? ORDER BY start",
        (run, stream, key, level),
    )
    return [(row["start"], as_table(row)) for row in rows]


def keys(db: Connection, run: int, stream: int) -> set[int]:
    rows = db.execute(
        "SELECT DISTINCT key FROM series WHERE run = ? AND stream = ? AND level = 0", (run, stream)
    )
    return {row["key"] for row in rows}


def remove(db: Connection, run: int, stream: int, start: int) -> None:
    db.execute(
        "DELETE FROM series WHERE run = ? AND stream = ? AND start = ?", (run, stream, start)
    )


def drawable(columns: Iterable[Column]) -> Iterator[tuple[int, Numbers, Numbers]]:
    """Each key's numbers, whatever their kinds, in the order of lines: key, lines, values."""
    groups: dict[int, list[Column]] = {}
    for column in columns:
        if column.kind in (FLOAT, INTEGER, TRUTH):
            groups.setdefault(column.key, []).append(column)
    for key, group in groups.items():
        if len(group) == 1:
            yield key, group[0].lines, np.asarray(group[0].values, np.float64)
            continue
        lines = np.concatenate([column.lines for column in group])
        numbers = np.concatenate([np.asarray(column.values, np.float64) for column in group])
        order = np.argsort(lines, kind="stable")
        yield key, lines[order], numbers[order]


def align(lines: Numbers, known: Numbers, numbers: Numbers) -> Numbers:
    """The numbers that stand in these lines; where there is none, the line's own number."""
    if len(lines) == len(known) and np.array_equal(lines, known):
        return np.where(np.isfinite(numbers), numbers, lines)
    places = np.searchsorted(known, lines)
    places[places == len(known)] = 0
    usable = (known[places] == lines) & np.isfinite(numbers[places])
    return np.where(usable, numbers[places], lines)


def summarise(lines: Numbers, x: Numbers, numbers: Numbers, width: int) -> Numbers:
    """For every `width` numbers: the last one's line and x, the last, the smallest, the largest."""
    firsts = np.arange(0, len(numbers), width)
    lasts = np.minimum(firsts + width, len(numbers)) - 1
    # A NaN is nobody's minimum; where there is nothing else, it is the answer.
    low = np.minimum.reduceat(np.where(np.isnan(numbers), np.inf, numbers), firsts)
    high = np.maximum.reduceat(np.where(np.isnan(numbers), -np.inf, numbers), firsts)
    only_nan = np.logical_and.reduceat(np.isnan(numbers), firsts)
    low, high = np.where(only_nan, np.nan, low), np.where(only_nan, np.nan, high)
    return np.stack([lines[lasts].astype(np.float64), x[lasts], numbers[lasts], low, high])


def series_of(columns: Sequence[Column], start: int, step: int | None) -> list[Series]:
    """What the table of series holds of a segment: every value, and the coarser levels."""
    rows: list[Series] = [
        (
            column.key,
            0,
            column.kind,
            len(column.lines),
            _pack_lines(column.lines - start),
            pack_values(column.values),
        )
        for column in columns
    ]
    numbers_of = {key: (lines, numbers) for key, lines, numbers in drawable(columns)}
    for key, (lines, numbers) in numbers_of.items():
        x = align(lines, *numbers_of[step]) if step in numbers_of else lines.astype(np.float64)
        for level, width in WIDTHS.items():
            if len(numbers) >= width:
                table = summarise(lines, x, numbers, width)
                rows.append((key, level, 0, table.shape[1], None, table.tobytes()))
    return rows


def _pack_lines(relative: Numbers) -> bytes | None:
    """Row numbers; None where they are simply 0, 1, 2, ..."""
    if len(relative) == 0 or (relative[0] == 0 and relative[-1] == len(relative) - 1):
        return None
    return zlib.compress(np.diff(relative, prepend=0).astype(np.uint32).tobytes(), 1)


def _unpack_lines(data: bytes | None, count: int, start: int) -> Numbers:
    if data is None:
        return _every_line(start, count)
    return np.cumsum(np.frombuffer(zlib.decompress(data), np.uint32).astype(np.int64)) + start


@functools.lru_cache(maxsize=16)
def _every_line(start: int, count: int) -> Numbers:
    """The keys of a segment mostly have values in the same lines: in all of them."""
    lines = np.arange(start, start + count, dtype=np.int64)
    lines.setflags(write=False)
    return lines


def level_for(count: int, points: int) -> int:
    """The coarsest level that still has as many points as are wanted."""
    fitting: Sequence[int] = [level for level, width in WIDTHS.items() if count // width >= points]
    return max(fitting, default=0)
