"""Metrics for drawing: as many points as are wanted, each with what it stands for.

A point stands for a stretch of rows: the last value there, the smallest and the largest. Reading
a curve costs about as much as it shows, whatever the length of the run; many runs are read at once.

A segment has a coarser level of a key only where it holds enough values of it. So each segment is
read at the coarsest level that it has, and what is in no segment yet is put between them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from sqlite3 import Connection

import numpy as np

from runyard.server.history import segments
from runyard.server.history.columns import LAST_NUMBER, Column, Numbers, decode
from runyard.server.history.metric_keys import STEP, known_keys
from runyard.server.history.reading.dotted_names import keys_of_runs, names_of_run

Span = tuple[float, float]
# A run and a key of its.
Metric = tuple[int, int]
# By the first row of a batch or a segment: its values, or a table of a coarser level.
Pieces = dict[int, list[Column] | Numbers]
# Of points: x, the last value, the smallest, the largest.
Table = tuple[Numbers, Numbers, Numbers, Numbers]

# A part of a curve is read at a level that would draw this many times as many points of the whole.
_CLOSER = 50


@dataclass(frozen=True)
class Curve:
    """`x`, `last`, `low` and `high` have the same length; `count` is how many values there are."""

    count: int
    x: Numbers
    last: Numbers
    low: Numbers
    high: Numbers


def read_curve(db: Connection, run: int, stream: int, key: int, points: int) -> Curve | None:
    """One metric of one run over the steps; None if it has no numbers."""
    return read_curves(db, stream, [(run, key)], points).get((run, key))


def read_all_curves(db: Connection, run: int, stream: int, points: int) -> dict[str, Curve]:
    """Every metric of one run over the steps, by its dotted name."""
    names = names_of_run(db, run, stream)
    curves = read_curves(db, stream, [(run, key) for key in names.values()], points)
    return {name: curves[run, key] for name, key in names.items() if (run, key) in curves}


def read_named_curves(
    db: Connection,
    runs: Collection[int],
    stream: int,
    names: Iterable[str],
    points: int,
    x: str | None = None,
    span: Span | None = None,
) -> dict[str, dict[int, Curve]]:
    """Many metrics of many runs, over the steps or another metric: by name, and then by run."""
    keys = keys_of_runs(db, runs, stream, names)
    metrics = {(run, key) for key_of in keys.values() for run, key in key_of.items()}
    # By its name, too, the step is the axis of every run: of one that has none it is the row.
    x_keys = None if x in (None, STEP) else keys_of_runs(db, runs, stream, [x]).get(x, {})
    curves = read_curves(db, stream, metrics, points, x_keys, span)
    return {
        name: {run: curves[run, key] for run, key in key_of.items() if (run, key) in curves}
        for name, key_of in keys.items()
    }


def read_curves(
    db: Connection,
    stream: int,
    metrics: Collection[Metric],
    points: int,
    x_keys: Mapping[int, int] | None = None,
    span: Span | None = None,
) -> dict[Metric, Curve]:
    """Many metrics of many runs, over the steps or over another key of each run.

    With a span, only what lies there, and its neighbours, so that lines reach the chart's edges.
    """
    step = known_keys(db, [STEP]).get(STEP, -1)
    below = {run: step if x_keys is None else x_keys.get(run, -1) for run, _ in metrics}
    reader = _Reader(db, stream, set(metrics), below)
    tails = reader.tails()
    levels = reader.levels()
    counts = {
        metric: sum(at[0] for at in levels.get(metric, {}).values())
        + sum(len(column.lines) for columns in tails.get(metric, {}).values() for column in columns)
        for metric in metrics
    }
    # Coarser levels know the steps of their points, and no other metric's values.
    wanted = points if span is None else points * _CLOSER
    coarsest = {
        metric: segments.level_for(count, wanted) if x_keys is None else 0
        for metric, count in counts.items()
        if count
    }
    chosen = {
        (metric, start): max(level for level in at if level <= coarsest[metric])
        for metric in coarsest
        for start, at in levels.get(metric, {}).items()
    }
    values, tables = reader.read(chosen)
    curves = {}
    axes: dict[Metric, _Axis] = {}
    for metric, level in coarsest.items():
        own: Pieces = {**values.get(metric, {}), **tails.get(metric, {}), **tables.get(metric, {})}
        x_metric = (metric[0], below[metric[0]])
        axis = axes.get(x_metric)
        if axis is None:
            x_columns = {**values.get(x_metric, {}), **tails.get(x_metric, {})}
            axis = axes[x_metric] = _Axis(x_columns)
        if x_keys is not None and not axis.columns:
            continue  # A run without x has no place on this axis: its steps are another unit.
        table = _table(own, axis, level)
        if span is not None:
            near = _within(table[0], span)
            x, last, low, high = (column[near] for column in table)
            table = (x, last, low, high)
        if len(table[0]):
            curves[metric] = Curve(counts[metric], *_thin(table, points))
    return curves


class _Reader:
    """The questions about some metrics; each asks about all runs at once."""

    def __init__(
        self, db: Connection, stream: int, metrics: set[Metric], below: Mapping[int, int]
    ) -> None:
        self._connection = db
        self._metrics = metrics
        self._below = below
        self._given = {
            "stream": stream,
            "last_number": LAST_NUMBER,
            "runs": json.dumps(sorted({run for run, _ in metrics})),
            "keys": json.dumps(sorted({key for _, key in metrics})),
        }

    def tails(self) -> dict[Metric, dict[int, list[Column]]]:
        """What is in no segment yet: by metric and batch."""
        wanted: dict[int, set[int]] = {}
        for run, key in (*self._metrics, *self._below.items()):
            wanted.setdefault(run, set()).add(key)
        tails: dict[Metric, dict[int, list[Column]]] = {}
        for row in self._connection.execute(
            "SELECT run, start, data FROM batches "
            "WHERE run IN (SELECT value FROM json_each(:runs)) AND stream = :stream",
            self._given,
        ):
            run, start = row["run"], row["start"]
            for column in decode(row["data"], start, frozenset(wanted[run])):
                if column.kind <= LAST_NUMBER:
                    tails.setdefault((run, column.key), {}).setdefault(start, []).append(column)
        return tails

    def levels(self) -> dict[Metric, dict[int, dict[int, int]]]:
        """Which levels the segments have: by metric and segment, each with how much it holds."""
        levels: dict[Metric, dict[int, dict[int, int]]] = {}
        for run, key, start, level, count in self._connection.execute(
            "SELECT run, key, start, level, count FROM series "
            "WHERE run IN (SELECT value FROM json_each(:runs)) AND stream = :stream "
            "AND key IN (SELECT value FROM json_each(:keys)) AND kind <= :last_number",
            self._given,
        ):
            if (run, key) in self._metrics:
                at = levels.setdefault((run, key), {}).setdefault(start, {})
                at[level] = at.get(level, 0) + count
        return levels

    def read(
        self, chosen: Mapping[tuple[Metric, int], int]
    ) -> tuple[dict[Metric, dict[int, list[Column]]], dict[Metric, dict[int, Numbers]]]:
        """Segments at the levels that were chosen, and the x of those that are read whole."""
        places = {(*metric, level, start) for (metric, start), level in chosen.items()}
        places |= {
            (run, self._below[run], 0, start) for run, _, level, start in places if not level
        }
        values: dict[Metric, dict[int, list[Column]]] = {}
        tables: dict[Metric, dict[int, Numbers]] = {}
        for row in self._connection.execute(
            "SELECT series.* FROM json_each(:places) AS place CROSS JOIN series "
            "WHERE run = json_extract(place.value, '$[0]') AND stream = :stream "
            "AND series.key = json_extract(place.value, '$[1]') "
            "AND level = json_extract(place.value, '$[2]') "
            "AND start = json_extract(place.value, '$[3]') AND kind <= :last_number",
            {**self._given, "places": json.dumps(sorted(places))},
        ):
            metric = (row["run"], row["key"])
            if row["level"]:
                tables.setdefault(metric, {})[row["start"]] = segments.as_table(row)
            else:
                column = segments.as_column(row)
                values.setdefault(metric, {}).setdefault(row["start"], []).append(column)
        return values, tables


class _Axis:
    """The x of a run's rows, by batch or segment. Most metrics of a run have the same."""

    def __init__(self, columns: Mapping[int, list[Column]]) -> None:
        self.columns = columns
        self._known: dict[tuple[int, ...], tuple[Numbers, Numbers] | None] = {}
        self._whole: dict[tuple[int, ...], Numbers] = {}

    def at(self, lines: Numbers, starts: tuple[int, ...]) -> Numbers:
        """The x of these rows; where there is none, the row's number."""
        if starts not in self._known:
            columns = [column for start in starts for column in self.columns.get(start, ())]
            numbers = segments.drawable(columns)
            self._known[starts] = next(((lines, x) for _, lines, x in numbers), None)
        known = self._known[starts]
        if known is None:
            return lines.astype(np.float64)
        if lines is not known[0]:
            return segments.align(lines, *known)
        if starts not in self._whole:
            self._whole[starts] = segments.align(lines, *known)
        return self._whole[starts]


def _table(pieces: Pieces, axis: _Axis, level: int) -> Table:
    """A metric's pieces in the order of rows."""
    tables: list[Table] = []
    columns: list[Column] = []
    starts: list[int] = []
    for start in sorted(pieces):
        piece = pieces[start]
        if isinstance(piece, list):
            columns += piece
            starts.append(start)
            continue
        _, x, last, low, high = piece
        tables += [*_summarised(columns, starts, axis, level), (x, last, low, high)]
        columns, starts = [], []
    tables += _summarised(columns, starts, axis, level)
    if len(tables) == 1:
        return tables[0]
    x, last, low, high = (np.concatenate(column) for column in zip(*tables, strict=True))
    return x, last, low, high


def _summarised(
    columns: list[Column], starts: Sequence[int], axis: _Axis, level: int
) -> list[Table]:
    """Values as a table at the level's width."""
    for _, lines, numbers in segments.drawable(columns):
        x = axis.at(lines, tuple(starts))
        if not level:
            return [(x, numbers, numbers, numbers)]
        _, x, last, low, high = segments.summarise(lines, x, numbers, segments.WIDTHS[level])
        return [(x, last, low, high)]
    return []


def _thin(table: Table, points: int) -> Table:
    x, last, low, high = table
    if len(x) <= points:
        return table
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


@dataclass(frozen=True)
class GroupCurve:
    """All have the same length. `deviation` is the standard deviation of the runs at that x."""

    count: int
    x: Numbers
    mean: Numbers
    low: Numbers
    high: Numbers
    deviation: Numbers
    runs: Numbers


def combine(curves: Iterable[Curve], points: int) -> GroupCurve | None:
    """The mean over all runs, at up to `points` places; None where no run has a value.

    A run counts where it has values, between its first and its last: between two of them it is
    taken to go straight. Spikes that no place hits are in `low` and `high` all the same.
    """
    usable = [curve for curve in map(_usable, curves) if curve is not None]
    if not usable:
        return None
    grid = _grid([curve[0] for curve in usable], points)
    count = np.zeros(len(grid))
    mean = np.zeros(len(grid))
    squares = np.zeros(len(grid))
    low = np.full(len(grid), np.inf)
    high = np.full(len(grid), -np.inf)
    for x, last, lowest, highest in usable:
        value = np.interp(grid, x, last, left=np.nan, right=np.nan)
        there = np.isfinite(value)
        count += there
        away = np.where(there, value - mean, 0.0)
        mean += np.divide(away, count, out=np.zeros_like(mean), where=count > 0)
        squares += np.where(there, away * (value - mean), 0.0)
        low = np.fmin(low, np.fmin(value, _stretch(np.fmin, grid, x, lowest)))
        high = np.fmax(high, np.fmax(value, _stretch(np.fmax, grid, x, highest)))
    some = count > 0
    deviation = np.sqrt(
        np.divide(squares, count - 1, out=np.zeros_like(squares), where=count > 1).clip(min=0)
    )
    return GroupCurve(
        len(usable), *(column[some] for column in (grid, mean, low, high, deviation, count))
    )


def _usable(curve: Curve) -> tuple[Numbers, Numbers, Numbers, Numbers] | None:
    """Finite points in the order of x, each x once: the last of its values."""
    keep = np.isfinite(curve.x) & np.isfinite(curve.last)
    x = curve.x[keep]
    if not len(x):
        return None
    order = np.argsort(x, kind="stable")
    x = x[order]
    is_last = np.append(x[1:] != x[:-1], True)
    last, low, high = (column[keep][order] for column in (curve.last, curve.low, curve.high))
    firsts = np.flatnonzero(np.append(True, is_last[:-1]))
    return (
        x[is_last],
        last[is_last],
        np.fmin.reduceat(low, firsts),
        np.fmax.reduceat(high, firsts),
    )


def _grid(xs: list[Numbers], points: int) -> Numbers:
    """The places of all runs, thinned out evenly where there are too many."""
    every = np.unique(np.concatenate(xs))
    if len(every) <= points:
        return every
    return every[np.linspace(0, len(every) - 1, max(points, 2)).astype(np.int64)]


def _stretch(choose: np.ufunc, grid: Numbers, x: Numbers, values: Numbers) -> Numbers:
    """The smallest or largest value after the place before, up to each place; NaN without any."""
    ends = np.searchsorted(x, grid, side="right")
    firsts = np.concatenate([[0], ends[:-1]])
    extremes = np.full(len(grid), np.nan)
    filled = ends > firsts
    if filled.any():
        extremes[filled] = choose.reduceat(values[: ends[-1]], firsts[filled])
    return extremes
