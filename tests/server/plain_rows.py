"""What a run's readings must be, told from its rows alone: a list of objects, read the plain way.

No batches, segments or levels here. A point of a curve may stand for several rows; which ones the
server may choose, so curves are not compared but checked against the rows.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from runyard.server.history.reading.curves import Curve

Row = dict[str, Any]
Point = tuple[float, float]
Path = tuple[str, ...]


def canonical(value: Any) -> str:
    """Text that two values share only if they are the same; NaN is the same as NaN."""
    return json.dumps(value, sort_keys=True)


def is_number(value: Any) -> bool:
    """Whether a chart can show it: truths are drawn as 0 and 1."""
    return isinstance(value, bool | float) or (isinstance(value, int) and abs(value) < 2**63)


def is_result(value: Any) -> bool:
    """Whether a search can use it."""
    return is_number(value) and not isinstance(value, bool) and math.isfinite(value)


def leaves(row: Row, before: Path = ()) -> Iterator[tuple[Path, Any]]:
    """A row's values with the keys that lead to them. Media stay whole."""
    for key, value in row.items():
        if isinstance(value, dict) and value and "_type" not in value:
            yield from leaves(value, (*before, key))
        else:
            yield (*before, key), value


def length_of_keys(path: Path) -> list[int]:
    """Paths with one dotted name are in the order of this: the longest key counts most."""
    return [key.count(".") for key in path]


def step_of(row: Row) -> float:
    """By which a rewind, a fork or a sync knows a row."""
    return float(row["_step"]) if is_result(row.get("_step")) else -1.0


@dataclass
class PlainRun:
    """The rows of a run; row numbers are their places. `archives`: what was put aside."""

    rows: list[Row] = field(default_factory=list)
    archives: list[list[Row]] = field(default_factory=list)

    def rewind(self, step: float) -> None:
        gone = [row for row in self.rows if step_of(row) > step]
        if gone:
            self.archives.append(gone)
        self.rows = self.up_to(step)

    def up_to(self, step: float) -> list[Row]:
        return [row for row in self.rows if step_of(row) <= step]

    def restart(self) -> None:
        if self.rows:
            self.archives.append(self.rows)
        self.rows = []

    def sync(self, rows: Sequence[Row]) -> None:
        """Rows that are not there yet go where their steps belong."""

        def place(row: Row) -> Point:
            return step_of(row), row["_timestamp"]

        known = {place(row) for row in self.rows}
        fresh = {place(row): row for row in rows if place(row) not in known}
        # Rows that are there stay in their order, whatever their steps say.
        newest = list(accumulate(map(place, self.rows), max))
        for at, row in sorted(fresh.items(), reverse=True, key=lambda item: item[0]):
            self.rows.insert(bisect_right(newest, at), row)


class PlainTable:
    """Everything that can be read of some rows."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        columns: dict[Path, list[tuple[int, Any]]] = {}
        for number, row in enumerate(rows):
            for path, value in leaves(row):
                columns.setdefault(path, []).append((number, value))
        self._columns = columns
        # By dotted name, the one path of these rows that it stands for.
        self.paths = {".".join(path): path for path in sorted(columns, key=length_of_keys)}

    def values(self, name: str) -> list[tuple[int, Any]]:
        """What was logged under a name, with row numbers."""
        return self._columns.get(self.paths.get(name, ()), [])

    def numbers(self, name: str) -> list[tuple[int, float]]:
        return [(line, float(value)) for line, value in self.values(name) if is_number(value)]

    def results(self, name: str) -> list[tuple[int, float]]:
        return [(line, float(value)) for line, value in self.values(name) if is_result(value)]

    def curve(self, name: str, x: str = "_step") -> list[Point]:
        """Every number of a metric over another; where that is missing, over the row's number.

        Nothing where the run has no number of the other at all: its steps are another unit.
        """
        if x != "_step" and not self.numbers(x):
            return []
        below = {line: value for line, value in self.numbers(x) if math.isfinite(value)}
        return [(below.get(line, float(line)), value) for line, value in self.numbers(name)]

    def metrics(self) -> list[str]:
        names = sorted(name for name in self.paths if not name.startswith("_"))
        return [name for name in names if self.numbers(name)]

    def logged_names(self) -> set[str]:
        """Dotted names under which there is any number, however it is nested."""
        return {
            ".".join(path)
            for path, values in self._columns.items()
            if any(is_number(value) for _, value in values) and not path[0].startswith("_")
        }

    def steps(self) -> list[tuple[int, float]]:
        return self.numbers("_step")

    def between(self, low: float, high: float) -> list[int]:
        return [line for line, step in self.steps() if low <= step <= high]

    def having(self, names: Sequence[str]) -> dict[int, Row]:
        """Rows that have all of these names, with these alone."""
        columns = {name: dict(self.values(name)) for name in names}
        common = [
            line
            for line in range(len(self.rows))
            if all(line in column for column in columns.values())
        ]
        return {line: {name: columns[name][line] for name in names} for line in common}

    def only(self, names: Sequence[str]) -> dict[int, Row]:
        """Every row that has any of these names, nested as it was logged."""
        paths = [path for name, path in self.paths.items() if name in names]
        found = {}
        for line, row in enumerate(self.rows):
            some: Row = {}
            for path, value in leaves(row):
                if path in paths:
                    place = some
                    for key in path[:-1]:
                        place = place.setdefault(key, {})
                    place[path[-1]] = value
            if some:
                found[line] = some
        return found


def within(points: Sequence[Point], low: float, high: float) -> list[Point]:
    """Points of a part of a curve, and their neighbours."""
    inside = [low <= x <= high for x, _ in points]
    return [
        point for number, point in enumerate(points) if any(inside[max(0, number - 1) : number + 2])
    ]


def assert_stands_for(curve: Curve, points: Sequence[Point], most: int) -> None:
    """A curve cuts the points into stretches and tells last, smallest and largest of each."""
    columns = (curve.x, curve.last, curve.low, curve.high)
    drawn = list(zip(*(column.tolist() for column in columns), strict=True))
    assert len(drawn) == min(most, len(points))
    # All places where the stretches up to here may end: steps and values need not be unique.
    ends = {0}
    for number, (x, last, low, high) in enumerate(drawn):
        left = len(drawn) - number - 1
        fitting = {
            end
            for start in ends
            for end in range(start + 1, len(points) - left + 1)
            if points[end - 1][0] == x
            and _is_same(points[end - 1][1], last)
            and _extremes(points[start:end]) == (repr(low), repr(high))
        }
        assert fitting, f"point {number}, {x, last, low, high}, is none of the rows"
        ends = fitting
    assert len(points) in ends, "the last rows are missing"


def _is_same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


def _extremes(points: Sequence[Point]) -> tuple[str, str]:
    """The smallest and the largest; NaN only where there is nothing else."""
    values = [value for _, value in points if not math.isnan(value)] or [math.nan]
    # Zero has two signs, which nobody sees.
    return repr(min(values) + 0.0), repr(max(values) + 0.0)
