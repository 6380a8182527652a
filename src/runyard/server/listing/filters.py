"""Filters over runs, as W&B's clients write them: a Mongo-like JSON object.

    {"$and": [{"state": "finished"}, {"config.lr": {"$lt": 0.1}}, {"tags": {"$in": ["best"]}}]}

A filter becomes a condition, and a condition a predicate over records. What SQL can answer by
itself, `narrow` puts into a test of SQL. Values of different kinds are never equal and never before
one another; what is missing equals null.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Union

from runyard.server.history.reading.dotted_names import MISSING
from runyard.server.listing.field_paths import (
    SELECTED,
    TEXT,
    TIME,
    Field,
    UnknownField,
    find_field,
    to_time,
)
from runyard.server.runs.patterns import BadPattern, Pattern

OPERATORS = (
    "$and", "$or", "$not", "$nor", "$eq", "$ne", "$gt", "$gte", "$lt", "$lte",
    "$in", "$nin", "$all", "$exists", "$regex", "$options",
)  # fmt: skip
_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$gt": lambda value, bound: value > bound,
    "$gte": lambda value, bound: value >= bound,
    "$lt": lambda value, bound: value < bound,
    "$lte": lambda value, bound: value <= bound,
}
_DEEPEST, _MOST_TESTS, _MOST_PATTERNS = 50, 2_000, 50


class BadFilter(ValueError):
    """A filter that says nothing, or nothing that can be asked of a run."""


class Record(Protocol):
    """What a filter looks at: one run."""

    def get(self, field: Field) -> Any: ...


@dataclass(frozen=True)
class Every:
    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class Some:
    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class No:
    part: Condition


@dataclass(frozen=True)
class Compare:
    """One field against one value; `operator` is $eq, $in, $exists, $regex or a comparison."""

    field: Field
    operator: str
    value: Any


Condition = Union[Every, Some, No, Compare]  # noqa: UP007 - names itself before it is whole
Predicate = Callable[[Record], bool]
EVERYTHING = Every(())


def read_filter(text: str | None) -> Condition:
    """The condition that a filter's text stands for; none, or an empty one, lets all pass."""
    if not text:
        return EVERYTHING
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadFilter(f"the filter is not JSON: {error}") from error
    return EVERYTHING if content is None else _Reader().whole(content, 0)


class _Reader:
    def __init__(self) -> None:
        self._tests = 0
        self._patterns = 0

    def whole(self, content: Any, depth: int) -> Condition:
        if not isinstance(content, dict):
            raise BadFilter(f"a filter is an object, not {_shown(content)}")
        if depth > _DEEPEST:
            raise BadFilter("the filter is nested too deep")
        parts: list[Condition] = []
        for name, value in content.items():
            if name in ("$and", "$or", "$nor"):
                inner = [self.whole(item, depth + 1) for item in _listed(name, value)]
                parts.append(_joined(name, inner))
            elif name == "$not":
                parts.append(No(self.whole(value, depth + 1)))
            elif name.startswith("$"):
                raise _unknown(name)
            else:
                try:
                    parts.append(self._of_field(find_field(name), value, depth + 1))
                except UnknownField as error:
                    raise BadFilter(str(error)) from error
        return _every(parts)

    def _of_field(self, field: Field, tests: Any, depth: int) -> Condition:
        self._tests += 1
        if self._tests > _MOST_TESTS:
            raise BadFilter(f"the filter has more than {_MOST_TESTS} tests")
        if depth > _DEEPEST:
            raise BadFilter("the filter is nested too deep")
        if not (isinstance(tests, dict) and any(name.startswith("$") for name in tests)):
            return Compare(field, "$eq", _value(field, tests))
        return _every(
            [self._test(field, name, tests, depth) for name in tests if name != "$options"]
        )

    def _test(self, field: Field, name: str, beside: Mapping[str, Any], depth: int) -> Condition:
        value = beside[name]
        if name in ("$and", "$or", "$nor"):
            inner = [self._of_field(field, item, depth + 1) for item in _listed(name, value)]
            return _joined(name, inner)
        if name == "$not":
            return No(self._of_field(field, value, depth + 1))
        if name in ("$eq", "$ne"):
            test: Condition = Compare(field, "$eq", _value(field, value))
            return test if name == "$eq" else No(test)
        if name in ("$in", "$nin"):
            wanted = tuple(_value(field, item) for item in _listed(name, value))
            test = Compare(field, "$in", wanted)
            return test if name == "$in" else No(test)
        if name == "$all":
            return _every([self._of_field(field, item, depth + 1) for item in _listed(name, value)])
        if name in _COMPARISONS:
            return Compare(field, name, _value(field, value))
        if name == "$exists":
            return Compare(field, "$exists", bool(value))
        if name == "$regex":
            self._patterns += 1
            if self._patterns > _MOST_PATTERNS:
                raise BadFilter(f"the filter has more than {_MOST_PATTERNS} patterns")
            return Compare(field, "$regex", _pattern(value, beside.get("$options")))
        raise _unknown(name)


def predicate(condition: Condition) -> Predicate:
    """The condition as a function of a record."""
    if isinstance(condition, Every):
        every = [predicate(part) for part in condition.parts]
        return lambda record: all(test(record) for test in every)
    if isinstance(condition, Some):
        some = [predicate(part) for part in condition.parts]
        return lambda record: any(test(record) for test in some)
    if isinstance(condition, No):
        inner = predicate(condition.part)
        return lambda record: not inner(record)
    field, test_value = condition.field, _test_of(condition)
    return lambda record: test_value(record.get(field))


def fields_of(condition: Condition) -> set[Field]:
    if isinstance(condition, Compare):
        return {condition.field}
    parts = (condition.part,) if isinstance(condition, No) else condition.parts
    return {field for part in parts for field in fields_of(part)}


def _test_of(condition: Compare) -> Callable[[Any], bool]:
    operator, wanted = condition.operator, condition.value
    if operator == "$exists":
        return lambda value: (value is not MISSING) == wanted
    if operator == "$in":
        known = {_marked(item) for item in wanted if not isinstance(item, list | dict)}
        odd = [item for item in wanted if isinstance(item, list | dict)]
        return lambda value: any(
            item in odd if isinstance(item, list | dict) else _marked(item) in known
            for item in _alternatives(value)
        )
    if operator == "$eq":
        return lambda value: any(_same(item, wanted) for item in _alternatives(value))
    if operator == "$regex":
        return lambda value: any(
            isinstance(item, str) and wanted.search(item) for item in _alternatives(value)
        )
    compare = _COMPARISONS[operator]
    return lambda value: any(
        _comparable(item, wanted) and compare(item, wanted) for item in _alternatives(value)
    )


def _alternatives(value: Any) -> list[Any]:
    """A list passes a test by itself, or by one of its items."""
    if isinstance(value, list):
        return [value, *value]
    return [None if value is MISSING else value]


def _marked(value: Any) -> tuple[str, Any]:
    """A value that equals only its own kind: 1 is not True, and NaN is NaN."""
    if isinstance(value, bool):
        return "truth", value
    if isinstance(value, int | float):
        return "number", "NaN" if math.isnan(value) else value
    return type(value).__name__, value


def _same(value: Any, wanted: Any) -> bool:
    if isinstance(value, list | dict) or isinstance(wanted, list | dict):
        return type(value) is type(wanted) and bool(value == wanted)
    return _marked(value) == _marked(wanted)


def _comparable(value: Any, bound: Any) -> bool:
    if isinstance(value, bool) or isinstance(bound, bool):
        return isinstance(value, bool) and isinstance(bound, bool)
    if isinstance(value, int | float):
        return isinstance(bound, int | float)
    return isinstance(value, str) and isinstance(bound, str)


def _value(field: Field, value: Any) -> Any:
    if field.kind != TIME or value is None:
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return to_time(value)
    if isinstance(value, str):
        try:
            return to_time(value)
        except ValueError as error:
            raise BadFilter(f"{field.name}: {error}") from error
    raise BadFilter(f"{field.name} is compared with a time, not with {_shown(value)}")


def _pattern(text: Any, options: Any) -> Pattern:
    if not isinstance(text, str) or not isinstance(options, str | None):
        raise BadFilter(f"$regex is a text, not {_shown(text)}")
    try:
        return Pattern(text, ignore_case="i" in (options or ""))
    except BadPattern as error:
        raise BadFilter(f"$regex {text[:100]!r}: {error}") from error


def _joined(name: str, parts: list[Condition]) -> Condition:
    if name == "$and":
        return _every(parts)
    condition = parts[0] if len(parts) == 1 else Some(tuple(parts))
    return condition if name == "$or" else No(condition)


def _every(parts: list[Condition]) -> Condition:
    return parts[0] if len(parts) == 1 else Every(tuple(parts))


def _listed(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise BadFilter(f"{name} takes a list, not {_shown(value)}")
    return value


def _unknown(name: str) -> BadFilter:
    return BadFilter(f"{name[:50]!r} is not an operator; there are {', '.join(OPERATORS)}")


def _shown(value: Any) -> str:
    return repr(value)[:60]


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
    tests, parameters = ["0"], []
    fitting = [value for value in values if _fits(value, field.kind)]
    if fitting:
        in_list = f"{column} IN (SELECT value FROM json_each(?))"
        tests.append(f"coalesce({in_list}, 0)")
        parameters.append(json.dumps(fitting))
    if any(value is None for value in values):
        tests.append(f"{column} IS NULL")
    return Narrowed(f"({' OR '.join(tests)})", tuple(parameters), exact=True)


def _fits(value: Any, kind: str) -> bool:
    """Whether a column of that kind can hold the value at all."""
    if kind == TEXT:
        return isinstance(value, str)
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < _LARGEST
