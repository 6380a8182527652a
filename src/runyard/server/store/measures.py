"""What a run reached: the values of metrics that the search looks at."""

from __future__ import annotations

import json
import math
import sqlite3
from typing import Any

import numpy as np

from runyard.server.ledger.rules import Aim, Rules
from runyard.server.store.columns import FLOAT, INTEGER
from runyard.server.store.curves import read_curve
from runyard.server.store.history import HISTORY, read_columns
from runyard.server.store.keys import find_keys
from runyard.server.store.runs import Row
from runyard.server.store.segments import drawable


def measure(connection: sqlite3.Connection, run: Row, rules: Rules) -> dict[str, float]:
    """The best value of each aim over history and summary, and the last one of each limit."""
    summary = json.loads(run["summary"])
    measured: dict[str, float] = {}
    for aim in rules.aims:
        value = _best(connection, run["key"], summary, aim)
        if value is not None:
            measured[aim.name] = value
    for limit in rules.limits:
        value = last_value(connection, run["key"], summary, limit.name)
        if value is not None and limit.name not in measured:
            measured[limit.name] = value
    return measured


def _best(
    connection: sqlite3.Connection, run: int, summary: dict[str, Any], aim: Aim
) -> float | None:
    values = [value for value in (as_number(_summarised(summary, aim.name)),) if value is not None]
    key = find_keys(connection, [aim.name]).get(aim.name)
    if key is not None:
        curve = read_curve(connection, run, HISTORY, key, 1)
        if curve is not None:
            extreme = float((curve.high if aim.maximize else curve.low)[0])
            if not math.isfinite(extreme):
                # An infinity hides what is behind it: look at every value.
                found = finite_values(connection, run, key)
                extreme = float(found.max() if aim.maximize else found.min()) if len(found) else 0.0
                values += [extreme] if len(found) else []
            else:
                values.append(extreme)
    return min(values, key=aim.lowered, default=None)


def last_value(
    connection: sqlite3.Connection, run: int, summary: dict[str, Any], name: str
) -> float | None:
    """The newest value: the summary's, else the last that was logged."""
    value = as_number(_summarised(summary, name))
    if value is not None:
        return value
    key = find_keys(connection, [name]).get(name)
    found = [] if key is None else finite_values(connection, run, key).tolist()
    return float(found[-1]) if found else None


def finite_values(
    connection: sqlite3.Connection, run: int, key: int
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Every finite number that a run logged under a key, in order. Truths are not numbers."""
    columns = [
        column
        for column in read_columns(connection, run, HISTORY, frozenset([key]))
        if column.kind in (FLOAT, INTEGER)
    ]
    for _, _, numbers in drawable(columns):
        return np.asarray(numbers[np.isfinite(numbers)], np.float64)
    return np.empty(0)


def as_number(value: Any) -> float | None:
    """A finite number, or nothing."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def _summarised(summary: dict[str, Any], name: str) -> Any:
    """A summary's entry; a dotted name may be a nested one."""
    if name in summary:
        return summary[name]
    found: Any = summary
    for part in name.split("."):
        if not isinstance(found, dict) or part not in found:
            return None
        found = found[part]
    return found
