"""A run's metrics, thinned out for drawing."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from runyard.server.store.lines import get_lines


def read_metrics(connection: sqlite3.Connection, run: int, points: int) -> list[dict[str, Any]]:
    return thin_out(get_lines(connection, run, "history"), points)


def thin_out(lines: Iterable[tuple[int, str]], points: int) -> list[dict[str, Any]]:
    """Every numeric metric as at most `points` points: the last of each stretch of the run."""
    series: dict[str, tuple[list[float], list[float]]] = {}
    for number, line in lines:
        try:
            row = json.loads(line)
            found = list(_numbers(row)) if isinstance(row, dict) else []
        except (ValueError, RecursionError):
            continue
        step = _step(row, number) if found else number
        for key, value in found:
            steps, values = series.setdefault(key, ([], []))
            steps.append(step)
            values.append(value)
    return [_series(key, *columns, points) for key, columns in sorted(series.items())]


def _series(key: str, steps: list[float], values: list[float], points: int) -> dict[str, Any]:
    count = len(values)
    finite = [value for value in values if math.isfinite(value)]
    wanted = max(1, min(points, count))
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


def _step(row: Mapping[str, Any], number: int) -> float:
    step = row.get("_step")
    return step if isinstance(step, int | float) and math.isfinite(_as_float(step)) else number


def _numbers(row: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    for key, value in row.items():
        if not prefix and key.startswith("_"):
            continue
        name = f"{prefix}{key}"
        if isinstance(value, bool):
            yield name, float(value)
        elif isinstance(value, int | float):
            yield name, value if math.isfinite(_as_float(value)) else _as_float(value)
        elif isinstance(value, dict) and "_type" not in value:
            yield from _numbers(value, f"{name}.")


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # JSON's integers know no limit.
        return math.inf if value > 0 else -math.inf
