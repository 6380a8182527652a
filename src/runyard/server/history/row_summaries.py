"""What rows make a run's summary: each key's last value, and what `define_metric` asked for."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from sqlite3 import Connection
from typing import Any

from runyard.server.history import pieces
from runyard.server.history.columns import NEST, RAW, TEXT, TRUTH, Column, to_rows
from runyard.server.history.history import HISTORY, keys_of_run, read_columns
from runyard.server.history.metric_keys import key_reader, known_keys


def summary_of_rows(db: Connection, run: int, summary: Mapping[str, Any]) -> dict[str, Any]:
    """`summary` is the present one: it tells of which keys minima and the like are wanted."""
    made = _last_values(db, run)
    wanted = {
        name: kinds
        for name, kinds in summary.items()
        if isinstance(kinds, dict) and kinds and set(kinds) <= set(_KINDS)
    }
    for name, key in known_keys(db, wanted).items():
        numbers = _numbers(db, run, key)
        if numbers:
            made[name] = {kind: _KINDS[kind](numbers) for kind in wanted[name]}
    return made


def _last_values(db: Connection, run: int) -> dict[str, Any]:
    """Of each key of rows, what the last row that has it says."""
    name_of = key_reader(db)
    # Nested values are stored under keys of their own; a row says all of one name or nothing.
    missing: dict[str, set[int]] = {}
    for key in keys_of_run(db, run, HISTORY):
        missing.setdefault(name_of(key).split(NEST)[0], set()).add(key)
    made: dict[str, Any] = {}
    for extent in reversed(pieces.extents(db, run, HISTORY)):
        if not missing:
            break
        keys = frozenset(key for group in missing.values() for key in group)
        last: dict[str, list[Column]] = {}
        for column in pieces.columns_of(db, run, HISTORY, extent, keys):
            if column.kind != RAW and len(column.lines):
                last.setdefault(name_of(column.key).split(NEST)[0], []).append(column)
        for name, columns in last.items():
            line = max(int(column.lines[-1]) for column in columns)
            parts = [pieces.between(column, line, line + 1) for column in columns]
            row = to_rows(parts, name_of)[line]
            assert isinstance(row, dict)
            made |= row
            del missing[name]
    return made


def _numbers(db: Connection, run: int, key: int) -> list[float]:
    """All finite values of a key, in the order of rows; integers stay integers."""
    placed: list[tuple[int, float]] = []
    for column in read_columns(db, run, HISTORY, frozenset([key])):
        values: list[Any] = (
            column.values if isinstance(column.values, list) else column.values.tolist()
        )
        if column.kind == TRUTH:
            values = [bool(value) for value in values]
        elif column.kind in (TEXT, RAW):
            # An integer of more than 64 bits is kept as text.
            values = [json.loads(text) if column.kind == TEXT else None for text in values]
        placed += [
            (line, value)
            for line, value in zip(column.lines.tolist(), values, strict=True)
            if isinstance(value, int | float) and math.isfinite(value)
        ]
    placed.sort(key=lambda place: place[0])
    return [value for _, value in placed]


_KINDS: dict[str, Any] = {
    "min": min,
    "max": max,
    "mean": lambda numbers: sum(numbers) / len(numbers),
    "first": lambda numbers: numbers[0],
    "last": lambda numbers: numbers[-1],
}
