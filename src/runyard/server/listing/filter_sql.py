"""What of a condition SQL can answer by itself, so that fewer rows need to be looked into.

The text only names columns of ours; everything a client wrote travels as a parameter.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from runyard.server.listing.field_paths import SELECTED, TEXT, TIME
from runyard.server.listing.filters import Compare, Condition, Every, No

_SIGNS = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
_LARGEST = 2**62


@dataclass(frozen=True)
class Narrowed:
    """A test in SQL that lets pass at least what the condition does; where exact, no more."""

    sql: str
    values: tuple[Any, ...]
    exact: bool


_ALL = Narrowed("1", (), exact=False)


def narrow(condition: Condition) -> Narrowed:
    if isinstance(condition, Compare):
        return _compare(condition)
    if isinstance(condition, No):
        inner = narrow(condition.part)
        if not inner.exact:
            return _ALL
        return Narrowed(f"NOT {inner.sql}", inner.values, exact=True)
    parts = [narrow(part) for part in condition.parts]
    is_every = isinstance(condition, Every)
    if not parts:
        return Narrowed("1" if is_every else "0", (), exact=True)
    joint = " AND " if is_every else " OR "
    return Narrowed(
        "(" + joint.join(part.sql for part in parts) + ")",
        tuple(value for part in parts for value in part.values),
        exact=all(part.exact for part in parts),
    )


def _compare(test: Compare) -> Narrowed:
    field, operator, wanted = test.field, test.operator, test.value
    if field.kind not in (TEXT, TIME) or operator == "$regex":
        return _ALL
    column = SELECTED[field.column]
    if field.kind == TIME:
        column = f"CAST({column} AS INTEGER)"
    if operator == "$exists":
        # A column is always there; where it holds nothing, the run has no such thing.
        return Narrowed(f"({column} IS {'NOT ' if wanted else ''}NULL)", (), exact=True)
    if operator in _SIGNS:
        if not _fits(wanted, field.kind):
            return Narrowed("0", (), exact=True)
        return Narrowed(f"coalesce({column} {_SIGNS[operator]} ?, 0)", (wanted,), exact=True)
    values = wanted if operator == "$in" else (wanted,)
    tests, given = ["0"], []
    fitting = [value for value in values if _fits(value, field.kind)]
    if fitting:
        in_list = f"{column} IN (SELECT value FROM json_each(?))"  # noqa: S608
        tests.append(f"coalesce({in_list}, 0)")
        given.append(json.dumps(fitting))
    if any(value is None for value in values):
        tests.append(f"{column} IS NULL")
    return Narrowed(f"({' OR '.join(tests)})", tuple(given), exact=True)


def _fits(value: Any, kind: str) -> bool:
    """Whether a column of that kind can hold the value at all."""
    if kind == TEXT:
        return isinstance(value, str)
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < _LARGEST
