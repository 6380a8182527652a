"""What a run reached: the values of metrics that the search looks at."""

from __future__ import annotations

import json
import math
from sqlite3 import Connection
from typing import Any

from runyard.server.history.history import HISTORY
from runyard.server.history.reading.curves import read_curve
from runyard.server.history.reading.dotted_names import keys_of_names, look_up
from runyard.server.history.reading.metrics import finite_values
from runyard.server.store.sql import Row
from runyard.server.sweeps.policy.rules import Aim, Rules


def measure(db: Connection, run: Row, rules: Rules) -> dict[str, float]:
    """The best value of each aim over history and summary, and the last one of each limit."""
    summary = json.loads(run["summary"])
    measured: dict[str, float] = {}
    for aim in rules.aims:
        value = _best(db, run["key"], summary, aim)
        if value is not None:
            measured[aim.name] = value
    for limit in rules.limits:
        value = last_value(db, run["key"], summary, limit.name)
        if value is not None and limit.name not in measured:
            measured[limit.name] = value
    return measured


def _best(db: Connection, run: int, summary: dict[str, Any], aim: Aim) -> float | None:
    key = keys_of_names(db, run, HISTORY, [aim.name]).get(aim.name)
    values = [] if key is None else _extremes(db, run, key, maximize=aim.maximize)
    summarised = as_number(look_up(summary, aim.name.split(".")))
    if summarised is not None:
        values.append(summarised)
    return min(values, key=aim.lowered, default=None)


def _extremes(db: Connection, run: int, key: int, *, maximize: bool) -> list[float]:
    """The largest or smallest finite number of a key; empty where there is none."""
    curve = read_curve(db, run, HISTORY, key, 1)
    if curve is None:
        return []
    extreme = float((curve.high if maximize else curve.low)[0])
    if math.isfinite(extreme) and extreme not in (0.0, 1.0):
        return [extreme]
    # An infinity hides what is behind it, and 0 or 1 may be a truth: look at every value.
    values: list[float] = finite_values(db, run, key).tolist()
    return [max(values) if maximize else min(values)] if values else []


def ends_not_finite(db: Connection, run: Row, rules: Rules) -> bool:
    """Whether the newest value of one of the aims is NaN or infinite."""
    names = [aim.name for aim in rules.aims]
    for key in keys_of_names(db, run["key"], HISTORY, names).values():
        curve = read_curve(db, run["key"], HISTORY, key, 1)
        if curve is not None and curve.count and not math.isfinite(float(curve.last[-1])):
            return True
    return False


def last_value(db: Connection, run: int, summary: dict[str, Any], name: str) -> float | None:
    """The newest value: the summary's, else the last that was logged."""
    value = as_number(look_up(summary, name.split(".")))
    if value is not None:
        return value
    key = keys_of_names(db, run, HISTORY, [name]).get(name)
    values = [] if key is None else finite_values(db, run, key).tolist()
    return float(values[-1]) if values else None


def as_number(value: Any) -> float | None:
    """A finite number, or nothing."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:  # An integer of more than a thousand bits.
        return None
    return number if math.isfinite(number) else None
