"""Rows as columns and back: nothing is lost, nothing changes its type."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from runyard.server.history.columns import (
    FLOAT,
    INTEGER,
    NEST,
    Column,
    decode,
    encode,
    keys_in,
    merge,
    pack_values,
    pick,
    to_rows,
    unpack_values,
)


class Names:
    """Numbers for names, as the database gives them."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def number(self, names: Iterable[str]) -> dict[str, int]:
        self.names += [name for name in dict.fromkeys(names) if name not in self.names]
        return {name: number for number, name in enumerate(self.names)}

    def name(self, number: int) -> str:
        return self.names[number]


def there_and_back(rows: list[Any], start: int = 0) -> list[Any]:
    names = Names()
    blob = encode([json.dumps(row) for row in rows], names.number)
    back = to_rows(decode(blob, start), names.name)
    return [back.get(start + place, {}) for place in range(len(rows))]


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
rows = st.lists(st.dictionaries(st.text(max_size=4), values, max_size=5), max_size=12)


def same(one: Any, other: Any) -> bool:
    """Equal, of equal type, with NaN equal to itself."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return type(one) is type(other) and one == other


@given(rows)
def test_any_rows_come_back_as_they_were(given_rows: list[dict[str, Any]]) -> None:
    back = [json.loads(row) if isinstance(row, str) else row for row in there_and_back(given_rows)]
    assert all(map(same, back, given_rows))


def test_lines_that_are_no_objects_are_kept_as_they_are() -> None:
    names = Names()
    blob = encode(["not json", "[1]", '{"a":1}', ""], names.number)
    assert to_rows(decode(blob, 7), names.name) == {7: "not json", 8: "[1]", 9: {"a": 1}, 10: ""}


def test_a_key_that_holds_our_separator_is_not_taken_for_a_path() -> None:
    row = {f"a{NEST}b": 1, "a": {"b": 2}}
    (back,) = there_and_back([row])
    assert json.loads(back) == row


def test_media_stays_whole_and_nested_numbers_become_keys() -> None:
    names = Names()
    image = {"_type": "image-file", "path": "x.png", "size": 3}
    encode([json.dumps({"img": image, "deep": {"er": {"loss": 0.5}}})], names.number)
    assert names.names == ["img", f"deep{NEST}er{NEST}loss"]


def test_a_key_of_many_types_is_one_column_each() -> None:
    names = Names()
    blob = encode([json.dumps({"a": value}) for value in (1, 2.5, "x", 3, True)], names.number)
    columns = decode(blob, 0)
    assert {column.kind: column.lines.tolist() for column in columns if column.kind <= INTEGER} == {
        INTEGER: [0, 3],
        FLOAT: [1],
    }
    assert keys_in(blob) == {0}


def test_some_keys_can_be_read_alone() -> None:
    names = Names()
    blob = encode([json.dumps({"a": 1, "b": 2.0, "c": "x"})] * 3, names.number)
    (column,) = decode(blob, 10, frozenset([names.number(["b"])["b"]]))
    assert np.asarray(column.values).tolist() == [2.0] * 3
    assert column.lines.tolist() == [10, 11, 12]


def test_batches_join_to_one_column() -> None:
    names = Names()
    first = encode(['{"a":1.5,"t":"x"}', '{"b":1}'], names.number)
    second = encode(['{"a":2.5,"t":"y"}'], names.number)
    joined = merge([*decode(first, 0), *decode(second, 2)])
    assert to_rows(joined, names.name) == {
        0: {"a": 1.5, "t": "x"},
        1: {"b": 1},
        2: {"a": 2.5, "t": "y"},
    }


@given(rows, st.data())
def test_columns_that_were_taken_apart_go_together_and_are_kept(
    given_rows: list[dict[str, Any]], data: st.DataObject
) -> None:
    names = Names()
    columns = decode(encode([json.dumps(row) for row in given_rows], names.number), 0)
    chosen = data.draw(st.sets(st.sampled_from(range(len(given_rows) or 1))))
    parts = [
        pick(column, np.array(sorted(numbers), np.int64))
        for numbers in (chosen, {*range(len(given_rows))} - chosen)
        for column in columns
    ]
    kept = [
        Column(
            column.key,
            column.kind,
            column.lines,
            unpack_values(column.kind, len(column.lines), pack_values(column.values)),
        )
        for column in merge(parts)
        if len(column.lines)
    ]
    back = to_rows(kept, names.name)
    whole = [back.get(place, {}) for place in range(len(given_rows))]
    assert same(whole, there_and_back(given_rows))


@given(st.lists(st.floats(), min_size=1) | st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_packed_numbers_unpack_to_the_same_bits(numbers: list[float] | list[int]) -> None:
    kind = FLOAT if isinstance(numbers[0], float) else INTEGER
    plain = np.array(numbers, np.float64 if kind == FLOAT else np.int64)
    back = np.asarray(unpack_values(kind, len(plain), pack_values(plain)))
    assert back.tobytes() == plain.tobytes()


@given(st.dictionaries(st.text(max_size=4), scalars, max_size=4), st.sampled_from(["", " ", "x"]))
def test_one_row_has_the_blob_that_it_has_among_others(row: dict[str, Any], more: str) -> None:
    """The short way of one row of numbers; what is behind it may be no JSON."""
    line, short, long = json.dumps(row) + more, Names(), Names()
    first, second = (
        decode(encode(lines, names.number), 0)
        for lines, names in (([line], short), ([line, "{}"], long))
    )
    kept = to_rows((pick(column, np.array([0])) for column in second), long.name)
    assert same(to_rows(first, short.name), kept)
