"""Numbered rows: whatever order they come in, each is there once; and curves of any length."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runyard.server.history.history import (
    HISTORY,
    count_rows,
    cut_rows,
    last_row,
    put_rows,
    read_objects,
    read_rows,
)
from runyard.server.history.joining import join_batches
from runyard.server.history.metric_keys import known_keys
from runyard.server.history.reading.curves import read_curve, read_named_curves
from runyard.server.history.reading.dotted_names import keys_of_names, names_of_run
from tests.server.memory import empty_store


@pytest.fixture
def store() -> Iterator[sqlite3.Connection]:
    connection = empty_store()
    yield connection
    connection.close()


def stored(connection: sqlite3.Connection, run: int = 1) -> dict[int, Any]:
    return {number: json.loads(row) for number, row in read_rows(connection, run, HISTORY)}


def put(connection: sqlite3.Connection, start: int, rows: list[Any], run: int = 1) -> None:
    put_rows(connection, run, HISTORY, start, [json.dumps(row) for row in rows])


some_value = st.sampled_from([1, 2.5, math.inf, "x", None, True, {"q": 1}, {"_type": "h"}, [1], {}])
some_row = st.dictionaries(st.sampled_from("abc"), some_value, min_size=1)
some_action: st.SearchStrategy[tuple[str, int, list[Any]]] = st.one_of(
    st.tuples(st.just("put"), st.integers(0, 30), st.lists(some_row, min_size=1, max_size=8)),
    st.tuples(st.just("join"), st.just(0), st.just([])),
    st.tuples(st.just("cut"), st.integers(0, 30), st.lists(st.just({}), max_size=6)),
    st.tuples(st.just("rewind"), st.integers(0, 30), st.just([])),
)


@given(st.lists(some_action, max_size=12))
def test_any_order_of_batches_equals_a_plain_table(
    actions: list[tuple[str, int, list[Any]]],
) -> None:
    connection, model = empty_store(), dict[int, Any]()
    for action, start, rows in actions:
        if action == "put":
            put(connection, start, rows)
            model.update(enumerate(rows, start))
        elif action == "join":
            join_batches(connection, 1, HISTORY)
        else:
            stop = start + len(rows) if action == "cut" else None
            cut_rows(connection, 1, HISTORY, start, stop)
            model = {
                number: row
                for number, row in model.items()
                if number < start or (stop is not None and number >= stop)
            }
        assert stored(connection) == dict(sorted(model.items()))
    connection.close()


def test_gaps_count_and_can_be_filled(store: sqlite3.Connection) -> None:
    put(store, 5, [{"a": 5}])
    assert count_rows(store, 1, HISTORY) == 6
    put(store, 0, [{"a": number} for number in range(5)])
    assert stored(store) == {number: {"a": number} for number in range(6)}
    assert last_row(store, 1, HISTORY) == '{"a":5}'


def test_a_batch_sent_twice_is_there_once(store: sqlite3.Connection) -> None:
    for _ in range(3):
        put(store, 0, [{"a": 1}, {"a": 2}])
        join_batches(store, 1, HISTORY)
    assert stored(store) == {0: {"a": 1}, 1: {"a": 2}}


def test_names_are_written_once_and_found_dotted(store: sqlite3.Connection) -> None:
    put(store, 0, [{"deep": {"er": 1}, "plain.dot": 2}])
    put(store, 0, [{"deep": {"er": 1}, "plain.dot": 2}], run=2)
    assert set(names_of_run(store, 1, HISTORY)) == {"deep.er", "plain.dot"}
    names = ["deep.er", "plain.dot", "nothing"]
    assert set(keys_of_names(store, 2, HISTORY, names)) == {"deep.er", "plain.dot"}
    assert store.execute("SELECT count(*) FROM keys").fetchone()[0] == 2


@pytest.mark.parametrize("joined", [0, 1, 3])
def test_a_curve_keeps_its_ends_and_its_spikes(store: sqlite3.Connection, joined: int) -> None:
    count = 25_000
    values = np.sin(np.arange(count) / 500)
    values[12_345] = 99.0
    for part in range(5):
        rows = range(part * 5000, part * 5000 + 5000)
        put(store, rows.start, [{"_step": 2 * row, "a": values[row]} for row in rows])
        if part < joined:
            join_batches(store, 1, HISTORY)
    keys = known_keys(store, ["a", "_step"])
    for points in (100, 1000, 10_000, 100_000):
        curve = read_curve(store, 1, HISTORY, keys["a"], points)
        assert curve is not None
        assert curve.count == count
        assert len(curve.x) <= points
        assert curve.high.max() == 99.0
        assert curve.low.min() == values.min()
        assert curve.x[-1] == 2 * (count - 1)
        assert curve.last[-1] == values[-1]
        assert (curve.low <= curve.last).all()
        assert (curve.last <= curve.high).all()
        assert (np.diff(curve.x) > 0).all()


def test_a_curve_of_mixed_numbers_with_nan(store: sqlite3.Connection) -> None:
    rows = [{"a": value} for value in (1, 2.5, math.nan, True, math.inf, "text")] * 40
    put(store, 0, rows)
    join_batches(store, 1, HISTORY)
    key = known_keys(store, ["a"])["a"]
    curve = read_curve(store, 1, HISTORY, key, 1000)
    assert curve is not None
    assert curve.count == 200
    assert np.isnan(curve.last[2])
    coarse = read_curve(store, 1, HISTORY, key, 20)
    assert coarse is not None
    assert coarse.low.min() == 1
    assert coarse.high.max() == math.inf


def test_some_keys_of_some_rows(store: sqlite3.Connection) -> None:
    put(store, 0, [{"a": number, "b": -number} for number in range(10)])
    key = known_keys(store, ["b"])["b"]
    assert dict(read_objects(store, 1, HISTORY, 3, 5, frozenset([key]))) == {
        3: {"b": -3},
        4: {"b": -4},
    }


def test_many_runs_at_once_and_another_metric_below(store: sqlite3.Connection) -> None:
    for run in range(1, 4):
        rows = [{"_step": row, "a": row * run, "epoch": row / 10} for row in range(500 * run)]
        put(store, 0, rows[:300], run)
        join_batches(store, run, HISTORY)
        put(store, 300, rows[300:], run)
    put(store, 0, [{"_step": 0, "b": 1}], run=4)
    curves = read_named_curves(store, [1, 2, 3, 4, 5], HISTORY, ["a"], 50)["a"]
    assert {run: curve.count for run, curve in curves.items()} == {1: 500, 2: 1000, 3: 1500}
    assert curves[3].last[-1] == 1499 * 3
    over_epoch = read_named_curves(store, [2], HISTORY, ["a"], 2000, "epoch")["a"][2]
    assert over_epoch.x.tolist() == [row / 10 for row in range(1000)]
