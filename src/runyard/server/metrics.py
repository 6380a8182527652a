"""A run's metrics, thinned out for drawing."""

from __future__ import annotations

import math
import sqlite3
from typing import Any

import numpy as np

from runyard.server.store.columns import Numbers
from runyard.server.store.curves import Curve, read_all_curves
from runyard.server.store.history import HISTORY, keys_of_run
from runyard.server.store.keys import dotted, key_reader


def read_metrics(connection: sqlite3.Connection, run: int, points: int) -> list[dict[str, Any]]:
    """Every numeric metric as at most `points` points over the steps."""
    name_of = key_reader(connection)
    names = {key: dotted(name_of(key)) for key in keys_of_run(connection, run, HISTORY)}
    curves = read_all_curves(connection, run, HISTORY, max(1, points))
    return [
        _series(name, curves[key])
        for key, name in sorted(names.items(), key=lambda item: item[1])
        if key in curves and not name.startswith("_")
    ]


def _series(name: str, curve: Curve) -> dict[str, Any]:
    last = curve.last.tolist()
    return {
        "key": name,
        "count": curve.count,
        "steps": [_step(x) for x in curve.x.tolist()],
        "values": [value if math.isfinite(value) else None for value in last],
        "last": last[-1],
        "minimum": min(_finite(curve.low), default=None),
        "maximum": max(_finite(curve.high), default=None),
    }


def _finite(values: Numbers) -> list[float]:
    finite: list[float] = values[np.isfinite(values)].tolist()
    return finite


def _step(value: float) -> float:
    return int(value) if float(value).is_integer() else value
