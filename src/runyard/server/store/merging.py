"""Rows put where they belong by what they say, not by the number they come with.

`wandb sync` numbers the rows of one process from zero, or from where the run ends, whatever the run
has already. So a row is known by its step and its time: one that is there is passed over, a new
one goes where its step is. Segments of one run may then come in any order, overlap, and come again.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Sequence
from typing import Any

import numpy as np

from runyard.server.store.columns import FLOAT, INTEGER, Numbers
from runyard.server.store.history import (
    HISTORY,
    count_rows,
    cut_rows,
    put_rows,
    read_columns,
    read_rows,
)
from runyard.server.store.keys import known_keys

# (step, time); a row that says neither comes first.
Place = tuple[float, float]


def merge_rows(connection: sqlite3.Connection, run: int, stream: int, lines: Sequence[str]) -> None:
    """Add the rows that are not there yet, in the order of their steps (events: of time)."""
    steps, times = read_places(connection, run, stream)
    # A gap says nothing, and may be filled.
    present = (steps >= 0) | (times >= 0)
    known = set(zip(steps[present].tolist(), times[present].tolist(), strict=True))
    fresh: dict[Place, str] = {}
    for line in lines:
        place = _place(line, stream)
        if place not in known:
            fresh[place] = line
    if not fresh:
        return
    first = min(fresh)
    later = (steps > first[0]) | ((steps == first[0]) & (times > first[1]))
    before = np.flatnonzero(present[: np.argmax(later)] if later.any() else present)
    start = int(before[-1]) + 1 if len(before) else 0
    rest = [(_place(line, stream), line) for _, line in read_rows(connection, run, stream, start)]
    if rest:
        cut_rows(connection, run, stream, start)
    # Sorting is stable: rows of one place keep their order.
    merged = sorted([*rest, *fresh.items()], key=lambda row: row[0])
    put_rows(connection, run, stream, start, [line for _, line in merged])


def read_places(connection: sqlite3.Connection, run: int, stream: int) -> tuple[Numbers, Numbers]:
    """The steps and the times of all rows; where a row has none, -1. Events have no steps."""
    count = count_rows(connection, run, stream)
    keys = known_keys(connection, ["_step", "_timestamp"])
    found = {name: np.full(count, -1.0) for name in ("_step", "_timestamp")}
    for name, key in keys.items():
        for column in read_columns(connection, run, stream, frozenset([key])):
            if column.kind in (FLOAT, INTEGER):
                values = np.asarray(column.values, np.float64)
                found[name][column.lines] = np.where(np.isfinite(values), values, -1.0)
    steps = found["_step"] if stream == HISTORY else np.full(count, -1.0)
    return steps, found["_timestamp"]


def _place(line: str, stream: int) -> Place:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict):
        return -1.0, -1.0
    step = _number(row.get("_step")) if stream == HISTORY else -1.0
    return step, _number(row.get("_timestamp"))


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return -1.0
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return -1.0  # Kept as text, so it is no number in what is stored either.
    return float(value) if math.isfinite(value) else -1.0
