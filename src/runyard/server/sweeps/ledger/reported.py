"""Curves of the metric by which trials are stopped, read from what was logged."""

from __future__ import annotations

from dataclasses import dataclass
from sqlite3 import Connection

import numpy as np

from runyard.server.history.columns import FLOAT, INTEGER, Numbers
from runyard.server.history.history import HISTORY, count_rows, read_columns
from runyard.server.history.reading.dotted_names import keys_of_names
from runyard.server.history.segments import drawable
from runyard.server.sweeps.ledger import trials


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
    found = {key: (lines, numbers) for key, lines, numbers in drawable(columns)}
    if keys[metric] not in found:
        return Reported(number, state, [], rows)
    lines, values = found[keys[metric]]
    if step is None:
        usable = np.isfinite(values)
        pairs = zip(lines[usable].tolist(), values[usable].tolist(), strict=True)
        curve = [(line, float(index), value) for index, (line, value) in enumerate(pairs, 1)]
        return Reported(number, state, curve, rows)
    if keys[step] not in found:
        return Reported(number, state, [], rows)
    return Reported(number, state, _with_steps(lines, values, *found[keys[step]]), rows)


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
