"""What a run has logged: its keys, with the kinds of their values, as W&B's clients know it."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from sqlite3 import Connection
from typing import Any

import numpy as np

from runyard.server.history.columns import (
    FLOAT,
    INTEGER,
    LAST_NUMBER,
    RAW,
    TEXT,
    TRUTH,
    Numbers,
    heads,
)
from runyard.server.history.history import HISTORY, count_rows, read_columns
from runyard.server.history.metric_keys import STEP
from runyard.server.history.reading.curves import Curve, read_curves
from runyard.server.history.reading.dotted_names import names_of_run

_TYPES = {FLOAT: "number", INTEGER: "number", TRUTH: "boolean"}
_STRETCHES = 100
# Whether a key only ever rises is looked up key by key: not for ten thousand of them.
_MOST_LOOKED_INTO = 500


def read_history_keys(db: Connection, run: int) -> dict[str, Any] | None:
    """None for a run without history."""
    kinds = _kinds(db, run)
    if not kinds:
        return None
    names = {name: key for name, key in names_of_run(db, run, HISTORY).items() if key in kinds}
    in_detail = [
        (run, key) for name, key in names.items() if len(names) <= _MOST_LOOKED_INTO or name == STEP
    ]
    curves = read_curves(db, HISTORY, in_detail, _STRETCHES)
    last_step: float = count_rows(db, run, HISTORY) - 1
    keys: dict[str, Any] = {}
    for name, key in sorted(names.items()):
        counts = kinds[key]
        keys[name] = {
            "typeCounts": _type_counts(db, run, key, counts),
            "monotonic": False,
            "previousValue": None,
        }
        curve = curves.get((run, key))
        if curve is not None:
            keys[name] |= {"monotonic": _only_rises(curve), "previousValue": _last(curve, counts)}
            if name == STEP:
                steps = curve.high
                if not np.isfinite(steps).all():  # An infinite one hides those beside it.
                    steps = _numbers(db, run, key)
                    steps = steps[np.isfinite(steps)]
                last_step = float(steps.max()) if len(steps) else last_step
    return {"lastStep": int(last_step), "sets": [], "keys": keys}


def _numbers(db: Connection, run: int, key: int) -> Numbers:
    columns = read_columns(db, run, HISTORY, frozenset([key]))
    numbers = [column.values for column in columns if column.kind <= LAST_NUMBER]
    return np.concatenate([np.empty(0), *(np.asarray(part, np.float64) for part in numbers)])


def _kinds(db: Connection, run: int) -> dict[int, dict[int, int]]:
    """For each key how many values of which kind it has."""
    totals: dict[int, dict[int, int]] = defaultdict(Counter)
    joined = db.execute(
        "SELECT key, kind, sum(count) AS count FROM series "
        "WHERE run = ? AND stream = ? AND level = 0 GROUP BY key, kind",
        (run, HISTORY),
    )
    entries = [(row["key"], row["kind"], row["count"]) for row in joined]
    for row in db.execute("SELECT data FROM batches WHERE run = ? AND stream = ?", (run, HISTORY)):
        entries += heads(row["data"])
    for key, kind, count in entries:
        if kind != RAW:
            totals[key][kind] += count
    return totals


def _type_counts(
    db: Connection, run: int, key: int, counts: dict[int, int]
) -> list[dict[str, Any]]:
    types: Counter[str] = Counter()
    for kind, count in counts.items():
        if kind in _TYPES:
            types[_TYPES[kind]] += count
    if TEXT in counts:
        for column in read_columns(db, run, HISTORY, frozenset([key])):
            if column.kind == TEXT:
                types.update(map(_type_of, column.values))
    return [{"type": name, "count": count} for name, count in types.items()]


def _type_of(text: str) -> str:
    """The type of a value that is kept as JSON."""
    if text.startswith("{"):
        name = json.loads(text).get("_type")
        return name if isinstance(name, str) else "map"
    simple = {'"': "string", "[": "list", "n": "nil"}
    return simple.get(text[:1], "number")


def _only_rises(curve: Curve) -> bool:
    """Told by the lowest and the highest of each stretch, not by every single value."""
    if not curve.count or not np.isfinite(curve.last).all():
        return False
    steady = bool((curve.last >= curve.high).all())
    return steady and bool((curve.low[1:] >= curve.high[:-1]).all())


def _last(curve: Curve, counts: dict[int, int]) -> float | int | None:
    if not curve.count:
        return None
    value = float(curve.last[-1])
    return int(value) if FLOAT not in counts and np.isfinite(value) else value
