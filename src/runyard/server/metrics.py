"""A run's metrics, thinned out for drawing."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from runyard.server.store.lines import get_lines


def read_metrics(connection: sqlite3.Connection, run: int, points: int) -> list[dict[str, Any]]:
    return thin_out((line for _, line in get_lines(connection, run, "history")), points)


def thin_out(lines: Iterable[str], points: int) -> list[dict[str, Any]]:
    """Every numeric metric as at most `points` points: the last of each stretch of the run."""
    series: dict[str, tuple[list[float], list[float]]] = {}
    for number, line in enumerate(lines):
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if not isinstance(row, dict):
            continue
        step = row.get("_step", number)
        for key, value in _numbers(row):
            steps, values = series.setdefault(key, ([], []))
            steps.append(step)
            values.append(value)
    return [_series(key, *columns, points) for key, columns in sorted(series.items())]


def _series(key: str, steps: list[float], values: list[float], points: int) -> dict[str, Any]:
    count = len(values)
    finite = [value for value in values if math.isfinite(value)]
    wanted = min(points, count)
    picks = [((index + 1) * count) // wanted - 1 for index in range(wanted)]
    return {
        "key": key,
        "count": count,
        "steps": [steps[pick] for pick in picks],
        "values": [values[pick] if math.isfinite(values[pick]) else None for pick in picks],
        "last": values[-1],
        "minimum": min(finite, default=None),
        "maximum": max(finite, default=None),
    }


def _numbers(row: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    for key, value in row.items():
        if not prefix and key.startswith("_"):
            continue
        name = f"{prefix}{key}"
        if isinstance(value, bool):
            yield name, float(value)
        elif isinstance(value, int | float):
            yield name, value
        elif isinstance(value, dict) and "_type" not in value:
            yield from _numbers(value, f"{name}.")
