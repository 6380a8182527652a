"""Metrics for drawing: as many points as are wanted, each with what it stands for.

A point stands for a stretch of rows: the last value there, the smallest and the largest. Reading
one costs about as much as it shows, whatever the length of the run.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

import numpy as np

from runyard.server.store import segments
from runyard.server.store.columns import Column, Numbers, decode
from runyard.server.store.history import read_columns


@dataclass(frozen=True)
class Curve:
    """`x`, `last`, `low` and `high` have the same length; `count` is how many values there are."""

    count: int
    x: Numbers
    last: Numbers
    low: Numbers
    high: Numbers


def read_curve(
    connection: sqlite3.Connection,
    run: int,
    stream: int,
    key: int,
    points: int,
    x_key: int | None = None,
) -> Curve:
    """One metric of one run; over the rows' numbers, or over another metric."""
    count, tail = _count(connection, run, stream, key)
    level = segments.level_for(count, points)
    lines, last, low, high = _at_level(connection, run, stream, key, level, tail)
    lines, last, low, high = _thin(lines, last, low, high, points)
    x = lines if x_key is None else _look_up(connection, run, stream, x_key, lines)
    return Curve(count, x, last, low, high)


def _count(
    connection: sqlite3.Connection, run: int, stream: int, key: int
) -> tuple[int, list[Column]]:
    """How many numbers there are, and those that are in no segment yet."""
    joined = connection.execute(
        "SELECT coalesce(sum(count), 0) FROM series "
        "WHERE run = ? AND stream = ? AND key = ? AND level = 0 AND kind <= 3",
        (run, stream, key),
    ).fetchone()[0]
    tail = [
        column
        for row in connection.execute(
            "SELECT start, data FROM batches WHERE run = ? AND stream = ? ORDER BY start",
            (run, stream),
        )
        for column in decode(row["data"], row["start"], frozenset([key]))
    ]
    return joined + sum(len(column.lines) for column in tail if column.kind <= 3), tail


def _at_level(
    connection: sqlite3.Connection, run: int, stream: int, key: int, level: int, tail: list[Column]
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    if level == 0:
        columns = read_columns(connection, run, stream, frozenset([key]))
        for _, lines, numbers in segments.drawable(columns):
            return lines, numbers, numbers, numbers
        return (np.empty(0),) * 4
    pieces = segments.read_level(connection, run, stream, key, level)
    width = segments.WIDTHS[level]
    for _, lines, numbers in segments.drawable(tail):
        pieces.append((int(lines[0]), segments.summarise(lines, numbers, width)))
    # A batch may stand before a segment where a gap was filled late.
    table = np.concatenate([piece for _, piece in sorted(pieces, key=lambda one: one[0])], axis=1)
    return table[0], table[1], table[2], table[3]


def _thin(
    lines: Numbers, last: Numbers, low: Numbers, high: Numbers, points: int
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    if len(lines) <= points:
        return lines, last, low, high
    firsts = np.arange(points) * len(lines) // points
    lasts = np.append(firsts[1:], len(lines)) - 1
    with np.errstate(invalid="ignore"):
        lowest = np.fmin.reduceat(low, firsts)
        highest = np.fmax.reduceat(high, firsts)
    return lines[lasts], last[lasts], lowest, highest


def _look_up(
    connection: sqlite3.Connection, run: int, stream: int, key: int, lines: Numbers
) -> Numbers:
    """The numbers of another metric in these rows; the row's own where it has none."""
    for _, known, numbers in segments.drawable(
        read_columns(connection, run, stream, frozenset([key]))
    ):
        places = np.searchsorted(known, lines)
        places[places == len(known)] = 0
        usable = (known[places] == lines) & np.isfinite(numbers[places])
        return np.where(usable, numbers[places], lines)
    return lines
