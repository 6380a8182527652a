"""A run's metrics, thinned out for drawing."""

from __future__ import annotations

import math
from collections.abc import Collection
from sqlite3 import Connection
from typing import Any

import numpy as np

from runyard.server.history.columns import FLOAT, INTEGER, TRUTH
from runyard.server.history.history import HISTORY, read_columns
from runyard.server.history.reading.curves import Curve, read_all_curves
from runyard.server.history.reading.dotted_names import names_of_run
from runyard.server.history.segments import drawable


def read_metrics(db: Connection, run: int, points: int) -> list[dict[str, Any]]:
    """Every numeric metric as at most `points` points over the steps."""
    curves = read_all_curves(db, run, HISTORY, max(1, points))
    return [
        _series(name, curve, *_extremes(db, run, name, curve))
        for name, curve in sorted(curves.items())
        if not name.startswith("_")
    ]


def _series(
    name: str, curve: Curve, minimum: float | None, maximum: float | None
) -> dict[str, Any]:
    last = curve.last.tolist()
    return {
        "key": name,
        "count": curve.count,
        "steps": [int(x) if float(x).is_integer() else x for x in curve.x.tolist()],
        "values": [value if math.isfinite(value) else None for value in last],
        "last": last[-1],
        "minimum": minimum,
        "maximum": maximum,
    }


def _extremes(
    db: Connection, run: int, name: str, curve: Curve
) -> tuple[float | None, float | None]:
    low, high = curve.low, curve.high
    if np.isinf(low).any() or np.isinf(high).any():
        # An infinity hides what is behind it: look at every value.
        key = names_of_run(db, run, HISTORY)[name]
        low = high = finite_values(db, run, key, (FLOAT, INTEGER, TRUTH))
    else:
        low, high = low[~np.isnan(low)], high[~np.isnan(high)]
    return (float(low.min()), float(high.max())) if len(low) else (None, None)


def finite_values(
    db: Connection, run: int, key: int, kinds: Collection[int] = (FLOAT, INTEGER)
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Every finite number that a run logged under a key, in order. Truths are not numbers."""
    columns = [
        column
        for column in read_columns(db, run, HISTORY, frozenset([key]))
        if column.kind in kinds
    ]
    for _, _, numbers in drawable(columns):
        return np.asarray(numbers[np.isfinite(numbers)], np.float64)
    return np.empty(0)
