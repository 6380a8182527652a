"""What a run reached: values of metrics that the search looks at, and curves for early stopping."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any

import numpy as np

from runyard.server.history.columns import FLOAT, INTEGER, Numbers
from runyard.server.history.history import HISTORY, count_rows, read_columns
from runyard.server.history.reading.curves import read_curve
from runyard.server.history.reading.dotted_names import keys_of_names, look_up
from runyard.server.history.reading.metrics import finite_values
from runyard.server.history.segments import drawable
from runyard.server.store.sql import Row
from runyard.server.sweeps.ledger import trials
from runyard.server.sweeps.policy.rules import Aim, Rules
from runyard.vocabulary import RESULT_STATES


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


def result_columns(
    db: Connection, sweep: int, state: str, measured: dict[str, float], rules: Rules
) -> dict[str, object]:
    """What a trial in that state counts with from now on; it is the last to have ended."""
    # What a failed program had logged is no result. What a paused one has reached is: most of them
    # never go on.
    counts = state in (*RESULT_STATES, "paused")
    return {
        "measured": json.dumps(measured),
        "score": rules.score(measured) if counts else None,
        "ended": trials.next_rank(db, sweep),
    }


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
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:  # An integer of more than a thousand bits.
        return None
    return number if math.isfinite(number) else None


@dataclass(frozen=True)
class Reported:
    """All that a trial has reported: the row, index and value of each, and how many rows it has."""

    trial: int
    state: str
    curve: list[tuple[int, float, float]]
    rows: int


def read_reported(
    db: Connection, run: int, number: int, state: str, metric: str, step: str | None
) -> Reported:
    """The finite values of a metric; the index counts them, or is what was logged as `step`."""
    names = [metric, *([step] if step else [])]
    keys = keys_of_names(db, run, HISTORY, names)
    rows = count_rows(db, run, HISTORY)
    if metric not in keys or (step is not None and step not in keys):
        return Reported(number, state, [], rows)
    columns = [
        column
        for column in read_columns(db, run, HISTORY, frozenset(keys.values()))
        if column.kind in (FLOAT, INTEGER)
    ]
    numbers_of = {key: (lines, numbers) for key, lines, numbers in drawable(columns)}
    if keys[metric] not in numbers_of:
        return Reported(number, state, [], rows)
    lines, values = numbers_of[keys[metric]]
    if step is None:
        usable = np.isfinite(values)
        pairs = zip(lines[usable].tolist(), values[usable].tolist(), strict=True)
        curve = [(line, float(index), value) for index, (line, value) in enumerate(pairs, 1)]
        return Reported(number, state, curve, rows)
    if keys[step] not in numbers_of:
        return Reported(number, state, [], rows)
    return Reported(number, state, _with_steps(lines, values, *numbers_of[keys[step]]), rows)


def _with_steps(
    lines: Numbers, values: Numbers, step_lines: Numbers, steps: Numbers
) -> list[tuple[int, float, float]]:
    steps_of = dict(zip(step_lines.tolist(), steps.tolist(), strict=True))
    return [
        (line, steps_of[line], value)
        for line, value in zip(lines.tolist(), values.tolist(), strict=True)
        if line in steps_of and np.isfinite(value) and np.isfinite(steps_of[line])
    ]


def read_all(db: Connection, sweep: int, metric: str, step: str | None) -> list[Reported]:
    """Of every trial of a sweep, in the order of their numbers."""
    return [
        read_reported(db, trial["run"], trial["number"], trial["state"], metric, step)
        for trial in trials.of_sweep(db, sweep)
        if trial["run"] is not None
    ]
