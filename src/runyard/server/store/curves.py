"""Metrics for drawing: as many points as are wanted, each with what it stands for.

A point stands for a stretch of rows: the last value there, the smallest and the largest. Reading
a curve costs about as much as it shows, whatever the length of the run; many runs are read at once.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from runyard.server.store import segments
from runyard.server.store.columns import LAST_NUMBER, Column, Numbers, decode
from runyard.server.store.keys import STEP, find_keys

Span = tuple[float, float]

# A part of a curve is read at a level that would draw this many times as many points of the whole.
_CLOSER = 50
_KEYS = "key IN (SELECT value FROM json_each(:keys))"
# One list: with an OR the index would not be used for keys.
_DRAWN = "key IN (SELECT value FROM json_each(:drawn))"
_RUNS = "run IN (SELECT value FROM json_each(:runs)) AND stream = :stream"


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
) -> Curve | None:
    """One metric of one run, over the steps or over another metric; None if it has no numbers."""
    return read_curves(connection, [run], stream, key, points, x_key).get(run)


def read_curves(
    connection: sqlite3.Connection,
    runs: Sequence[int],
    stream: int,
    key: int,
    points: int,
    x_key: int | None = None,
) -> dict[int, Curve]:
    """One metric of many runs."""
    return read_many_curves(connection, runs, stream, [key], points, x_key)[key]


def read_many_curves(
    connection: sqlite3.Connection,
    runs: Sequence[int],
    stream: int,
    keys: Sequence[int],
    points: int,
    x_key: int | None = None,
    span: Span | None = None,
) -> dict[int, dict[int, Curve]]:
    """Many metrics of many runs: by key, and then by run.

    With a span, only what lies there, and its neighbours, so that lines reach the chart's edges.
    """
    below = find_keys(connection, [STEP]).get(STEP, -1) if x_key is None else x_key
    reader = _Reader(connection, stream, keys, below)
    tails = reader.tails(runs)
    counts = reader.counts(runs)
    for run, columns in tails.items():
        for column in columns:
            if column.key in counts and column.kind <= LAST_NUMBER:
                its = counts[column.key]
                its[run] = its.get(run, 0) + len(column.lines)
    # Coarser levels know the steps of their points, and no other metric's values.
    wanted = points if span is None else points * _CLOSER
    levels = {
        (key, run): segments.level_for(count, wanted) if x_key is None else 0
        for key, its in counts.items()
        for run, count in its.items()
        if count
    }
    whole = reader.whole({run for (_, run), level in levels.items() if not level}, levels)
    pieces = reader.coarse(levels)
    curves: dict[int, dict[int, Curve]] = {key: {} for key in keys}
    for (key, run), level in levels.items():
        own = [
            column
            for column in (*(() if level else whole.get(run, ())), *tails.get(run, ()))
            if column.key in (key, below)
        ]
        table = _joined(pieces.pop((key, run), []), _table(own, key, below, level))
        if span is not None:
            table = table[:, _within(table[1], span)]
        if table.shape[1]:
            curves[key][run] = Curve(counts[key][run], *_thin(table, points))
    return curves


def read_all_curves(
    connection: sqlite3.Connection, run: int, stream: int, points: int
) -> dict[int, Curve]:
    """Every metric of one run over the steps. Batches are unpacked once, not once a metric."""
    step = find_keys(connection, [STEP]).get(STEP, -1)
    place = {"run": run, "stream": stream, "last_number": LAST_NUMBER}
    tail: dict[int, list[Column]] = {}
    for row in connection.execute(
        "SELECT start, data FROM batches WHERE run = :run AND stream = :stream ORDER BY start",
        place,
    ):
        for column in decode(row["data"], row["start"]):
            if column.kind <= LAST_NUMBER:
                tail.setdefault(column.key, []).append(column)
    counts = {key: sum(len(column.lines) for column in found) for key, found in tail.items()}
    joined = "FROM series WHERE run = :run AND stream = :stream"
    for row in connection.execute(
        f"SELECT key, sum(count) AS count {joined} "
        "AND level = 0 AND kind <= :last_number GROUP BY key",
        place,
    ):
        counts[row["key"]] = counts.get(row["key"], 0) + row["count"]
    levels = {key: segments.level_for(count, points) for key, count in counts.items()}
    pieces: dict[int, list[Numbers]] = {}
    for row in connection.execute(f"SELECT * {joined} AND kind <= :last_number", place):
        if row["level"] == 0 and (levels[row["key"]] == 0 or row["key"] == step):
            tail.setdefault(row["key"], []).append(segments.as_column(row))
        elif row["level"] and row["level"] == levels[row["key"]]:
            pieces.setdefault(row["key"], []).append(segments.as_table(row))
    curves = {}
    for key, count in counts.items():
        level = levels[key]
        own = [] if level and key == step and key in pieces else tail.get(key, [])
        columns = [*own, *(tail.get(step, []) if key != step else [])]
        tables = [*pieces.get(key, []), *_table(columns, key, step, level)]
        if tables:
            curves[key] = Curve(count, *_thin(_joined(tables, []), points))
    return curves


class _Reader:
    """The questions about some metrics; each asks about all runs at once."""

    def __init__(
        self, connection: sqlite3.Connection, stream: int, keys: Sequence[int], x_key: int
    ) -> None:
        self._connection = connection
        self._stream = stream
        self._keys = list(keys)
        self._x_key = x_key

    def counts(self, runs: Collection[int]) -> dict[int, dict[int, int]]:
        """By key, and then by run, how many values are in segments."""
        found: dict[int, dict[int, int]] = {key: {} for key in self._keys}
        for row in self._ask(
            f"SELECT run, key, sum(count) AS count FROM series WHERE {_RUNS} "  # noqa: S608
            f"AND {_KEYS} AND level = 0 AND kind <= :last_number GROUP BY run, key",
            runs,
        ):
            found[row["key"]][row["run"]] = row["count"]
        return found

    def tails(self, runs: Collection[int]) -> dict[int, list[Column]]:
        """What is in no segment yet."""
        wanted = frozenset((*self._keys, self._x_key))
        found: dict[int, list[Column]] = {}
        for row in self._ask(
            f"SELECT run, start, data FROM batches WHERE {_RUNS} ORDER BY run, start",  # noqa: S608
            runs,
        ):
            found.setdefault(row["run"], []).extend(decode(row["data"], row["start"], wanted))
        return found

    def whole(
        self, runs: Collection[int], levels: Mapping[tuple[int, int], int]
    ) -> dict[int, list[Column]]:
        """Every value that is in a segment, of the metrics that are drawn from them."""
        found: dict[int, list[Column]] = {}
        if not runs:
            return found
        for row in self._ask(
            f"SELECT * FROM series WHERE {_RUNS} "  # noqa: S608
            f"AND {_DRAWN} AND level = 0 AND kind <= :last_number",
            runs,
        ):
            if row["key"] == self._x_key or not levels.get((row["key"], row["run"]), 1):
                found.setdefault(row["run"], []).append(segments.as_column(row))
        return found

    def coarse(self, levels: Mapping[tuple[int, int], int]) -> dict[tuple[int, int], list[Numbers]]:
        """What is drawn from coarser levels, by key and run."""
        found: dict[tuple[int, int], list[Numbers]] = {}
        for level in sorted({its for its in levels.values() if its}):
            runs = {run for (_, run), its in levels.items() if its == level}
            for row in self._ask(
                f"SELECT run, key, count, data FROM series WHERE {_RUNS} "  # noqa: S608
                f"AND {_KEYS} AND level = {int(level)}",
                runs,
            ):
                place = (row["key"], row["run"])
                if levels.get(place) == level:
                    found.setdefault(place, []).append(segments.as_table(row))
        return found

    def _ask(self, question: str, runs: Collection[int]) -> sqlite3.Cursor:
        return self._connection.execute(
            question,
            {
                "runs": json.dumps(list(runs)),
                "stream": self._stream,
                "keys": json.dumps(self._keys),
                "drawn": json.dumps([*self._keys, self._x_key]),
                "last_number": LAST_NUMBER,
            },
        )


def _table(columns: Iterable[Column], key: int, x_key: int, level: int) -> list[Numbers]:
    """Columns as a table of (line, x, last, low, high), at the level's width."""
    found = {one: (lines, numbers) for one, lines, numbers in segments.drawable(columns)}
    if key not in found:
        return []
    lines, numbers = found[key]
    x = segments.align(lines, *found[x_key]) if x_key in found else lines.astype(np.float64)
    if level:
        return [segments.summarise(lines, x, numbers, segments.WIDTHS[level])]
    return [np.stack([lines.astype(np.float64), x, numbers, numbers, numbers])]


def _joined(pieces: list[Numbers], rest: list[Numbers]) -> Numbers:
    tables = [*pieces, *rest]
    if len(tables) == 1:
        return tables[0]
    # By line: a batch may stand before a segment where a gap was filled late.
    return np.concatenate(sorted(tables, key=lambda table: float(table[0, 0])), axis=1)


def _thin(table: Numbers, points: int) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    _, x, last, low, high = table
    if len(x) <= points:
        return x, last, low, high
    firsts = np.arange(points) * len(x) // points
    lasts = np.append(firsts[1:], len(x)) - 1
    # fmin passes over NaN, which is nobody's smallest value.
    return x[lasts], last[lasts], np.fmin.reduceat(low, firsts), np.fmax.reduceat(high, firsts)


def _within(x: Numbers, span: Span) -> Numbers:
    """Which points lie in a span, or next to one that does."""
    inside = (x >= span[0]) & (x <= span[1])
    near: Numbers = inside.copy()
    near[1:] |= inside[:-1]
    near[:-1] |= inside[1:]
    return near
