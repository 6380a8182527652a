"""Which type a Parquet column has that holds what a run logged under one key.

A column has one type: whole numbers beside others become floats, objects become structs that have
the fields of all of them, lists keep one type of items. What has no such type is kept as JSON.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeAlias, cast

if TYPE_CHECKING:
    import pyarrow

# A simple kind, the fields of an object, or a list with the shape of its items.
Shape: TypeAlias = "str | dict[str, Shape] | list[Shape]"
NOTHING, TRUTH, INTEGER, NUMBER, TEXT, MIXED = "nothing", "truth", "int", "number", "text", "mixed"

_KINDS = {type(None): NOTHING, bool: TRUTH, int: INTEGER, float: NUMBER, str: TEXT}
_DEEPEST = 16
# More would be a column for each value of a table that somebody logged as an object.
_MOST_LEAVES = 1_000


def shape_of(value: Any, depth: int = 0) -> Shape:
    kind = _KINDS.get(type(value))
    if kind == INTEGER and not -(2**63) <= value < 2**63:
        return NUMBER
    if kind is not None:
        return kind
    if depth >= _DEEPEST or value == {}:  # A struct needs a field.
        return MIXED
    if isinstance(value, dict):
        return {name: shape_of(part, depth + 1) for name, part in value.items()}
    items: Shape = NOTHING
    for part in value:
        items = merged(items, shape_of(part, depth + 1))
    return [items]


def merged(first: Shape, other: Shape) -> Shape:
    """The shape that holds values of both."""
    if first == other or other == NOTHING:
        return first
    if first == NOTHING:
        return other
    if isinstance(first, dict) and isinstance(other, dict):
        both = {**first, **{name: merged(first.get(name, NOTHING), other[name]) for name in other}}
        return both if _leaves(both) <= _MOST_LEAVES else MIXED
    if isinstance(first, list) and isinstance(other, list):
        return [merged(first[0], other[0])]
    if isinstance(first, str) and isinstance(other, str) and {first, other} == {INTEGER, NUMBER}:
        return NUMBER
    return MIXED


def _leaves(shape: Shape) -> int:
    if isinstance(shape, dict):
        return sum(map(_leaves, shape.values()))
    return _leaves(shape[0]) if isinstance(shape, list) else 1


def arrow_type(shape: Shape) -> pyarrow.DataType:
    import pyarrow

    if isinstance(shape, dict):
        return pyarrow.struct([(_text(name), arrow_type(part)) for name, part in shape.items()])
    if isinstance(shape, list):
        return pyarrow.list_(arrow_type(shape[0]))
    simple = {
        NOTHING: pyarrow.null(),
        TRUTH: pyarrow.bool_(),
        INTEGER: pyarrow.int64(),
        NUMBER: pyarrow.float64(),
    }
    return simple.get(shape, pyarrow.string())


def fitted(value: Any, shape: Shape) -> Any:
    """The value as its column takes it."""
    if value is None:
        return None
    if isinstance(shape, dict):
        return {_text(name): fitted(value.get(name), part) for name, part in shape.items()}
    if isinstance(shape, list):
        return [fitted(part, shape[0]) for part in value]
    if shape == NUMBER:
        return _number(value)
    if shape == TEXT:
        return _text(value)
    return json.dumps(value) if shape == MIXED else value


def _number(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _text(text: str) -> str:
    """Parquet keeps UTF-8, which half of a surrogate pair is not."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def columns_schema(shapes: dict[str, Shape]) -> pyarrow.Schema:
    import pyarrow

    fields = [(_text(name), arrow_type(shape)) for name, shape in shapes.items()]
    return cast("pyarrow.Schema", pyarrow.schema(fields))
