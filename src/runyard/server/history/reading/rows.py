"""Rows of a run's history that are asked for: spread over it, between two steps, or of some keys.

Only the columns and rows that are wanted are put together again.
"""

from __future__ import annotations

import functools
import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any

import numpy as np

from runyard.server.history import segments
from runyard.server.history.columns import RAW, Column, Numbers, decode, pick, to_rows
from runyard.server.history.metric_keys import STEP, key_reader, known_keys
from runyard.server.history.reading.dotted_names import keys_of_names

_EVERYTHING = (0, 2**62)


@dataclass(frozen=True)
class Window:
    """Steps from `low` to `high`, both included."""

    low: int
    high: int


def spread(count: int, samples: int) -> Numbers:
    """At most `samples` numbers below `count`, evenly spread, the first and the last among them."""
    if samples >= count:
        return np.arange(count, dtype=np.int64)
    if samples <= 1:
        return np.array([count - 1] * min(samples, count), dtype=np.int64)
    return np.rint(np.linspace(0, count - 1, samples)).astype(np.int64)


def sample_rows(db: Connection, run: int, stream: int, samples: int) -> list[dict[str, Any]]:
    places = _places(db, run, stream, *_EVERYTHING)
    if not places:
        return []
    starts = np.array([place["start"] for place in places])
    ends = np.cumsum([place["stop"] - place["start"] for place in places])
    chosen = spread(int(ends[-1]), samples)
    owners = np.searchsorted(ends, chosen, side="right")
    before = np.concatenate([[0], ends])[owners]
    return _read(db, run, stream, starts[owners] + chosen - before)


def rows_between(db: Connection, run: int, stream: int, window: Window) -> list[dict[str, Any]]:
    return _read(db, run, stream, _in_window(db, run, stream, window))


def sample_keys(
    db: Connection,
    run: int,
    stream: int,
    names: Sequence[str],
    samples: int,
    window: Window | None = None,
) -> list[dict[str, Any]]:
    """Rows that have all of these keys, with these alone; nested ones by dotted names."""
    named = keys_of_names(db, run, stream, names)
    if not names or any(name not in named for name in names):
        return []
    name_of = {key: name for name, key in named.items()}
    numbers = None if window is None else _in_window(db, run, stream, window)
    if numbers is not None and not len(numbers):
        return []
    bounds = _EVERYTHING if numbers is None else (int(numbers[0]), int(numbers[-1]) + 1)
    columns, having = list[Column](), [np.empty(0, np.int64)]
    for place in _places(db, run, stream, *bounds):
        read = _columns(db, run, stream, place, frozenset(name_of))
        columns += read
        lines = [_lines([column for column in read if column.key == key]) for key in name_of]
        if numbers is not None:
            low, high = np.searchsorted(numbers, (place["start"], place["stop"]))
            lines.append(numbers[low:high])
        having.append(functools.reduce(_common, lines))
    complete = np.concatenate(having)
    chosen = complete[spread(len(complete), samples)]
    picked = [pick(column, chosen) for column in columns]
    return [row for row in to_rows(picked, name_of.__getitem__).values() if isinstance(row, dict)]


def _lines(columns: Sequence[Column]) -> Numbers:
    """The rows in which one key has a value, upwards; columns differ in the kind of value."""
    if len(columns) == 1:
        return columns[0].lines
    return np.sort(np.concatenate([np.empty(0, np.int64), *(column.lines for column in columns)]))


def _common(first: Numbers, other: Numbers) -> Numbers:
    # Keys that are logged together have the same rows: no need to sort a million of them.
    return first if np.array_equal(first, other) else np.intersect1d(first, other)


def first_step(db: Connection, run: int, stream: int) -> int | None:
    key = known_keys(db, [STEP]).get(STEP)
    for place in _places(db, run, stream, *_EVERYTHING) if key is not None else ():
        columns = _columns(db, run, stream, place, frozenset([key or 0]))
        for _, _, steps in segments.drawable(columns):
            finite = steps[np.isfinite(steps)]
            if len(finite):
                return int(finite[0])
    return None


def _read(db: Connection, run: int, stream: int, numbers: Numbers) -> list[dict[str, Any]]:
    """Whole rows of these numbers, which go upwards."""
    if not len(numbers):
        return []
    name_of = key_reader(db)
    objects: list[dict[str, Any]] = []
    for place in _places(db, run, stream, int(numbers[0]), int(numbers[-1]) + 1):
        low, high = np.searchsorted(numbers, (place["start"], place["stop"]))
        if low == high:
            continue
        wanted = numbers[low:high]
        columns = _columns(db, run, stream, place, None)
        rows = to_rows([pick(column, wanted) for column in columns], name_of)
        objects.extend(as_object(row) for row in rows.values())
    return objects


def as_object(row: dict[str, Any] | str) -> dict[str, Any]:
    if isinstance(row, dict):
        return row
    try:
        content = json.loads(row)
    except (ValueError, RecursionError):
        content = None
    return content if isinstance(content, dict) else {}


def _in_window(db: Connection, run: int, stream: int, window: Window) -> Numbers:
    """Numbers of the rows whose step is in the window, upwards."""
    key = known_keys(db, [STEP]).get(STEP)
    if key is None:
        return np.empty(0, np.int64)
    # A long run's coarse steps tell which segments are worth a look.
    ranges = {
        start: (table[3].min(), table[4].max())
        for start, table in segments.read_level(db, run, stream, key, max(segments.WIDTHS))
    }
    parts = [np.empty(0, np.int64)]
    for place in _places(db, run, stream, *_EVERYTHING):
        low, high = ranges.get(place["start"], (-np.inf, np.inf))
        if place["joined"] and (high < window.low or low > window.high):
            continue
        columns = _columns(db, run, stream, place, frozenset([key]))
        for _, lines, steps in segments.drawable(columns):
            parts.append(lines[(steps >= window.low) & (steps <= window.high)])
    return np.unique(np.concatenate(parts))


def _places(db: Connection, run: int, stream: int, start: int, stop: int) -> list[sqlite3.Row]:
    """Batches and segments in the order of rows."""
    return db.execute(
        "SELECT start, stop, 0 AS joined FROM batches "
        "WHERE run = :run AND stream = :stream AND start < :stop AND stop > :start UNION ALL "
        "SELECT start, stop, 1 FROM segments "
        "WHERE run = :run AND stream = :stream AND start < :stop AND stop > :start ORDER BY start",
        {"run": run, "stream": stream, "start": start, "stop": stop},
    ).fetchall()


def _columns(
    db: Connection, run: int, stream: int, place: sqlite3.Row, keys: frozenset[int] | None
) -> list[Column]:
    if place["joined"]:
        columns = segments.read(db, run, stream, place["start"], keys)
    else:
        row = db.execute(
            "SELECT data FROM batches WHERE run = ? AND stream = ? AND start = ?",
            (run, stream, place["start"]),
        ).fetchone()
        columns = [] if row is None else decode(row["data"], place["start"], keys)
    return columns if keys is None else [column for column in columns if column.kind != RAW]
