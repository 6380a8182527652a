"""Metrics thinned out for drawing: few points, the last always among them."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from runyard.server.history.history import HISTORY, put_rows
from runyard.server.history.reading.metrics import read_metrics
from tests.server.memory import empty_store

_VALUES = st.lists(st.floats(allow_nan=True) | st.integers(-(2**60), 2**60), min_size=1)


def metrics_of(lines: list[str], points: int) -> list[dict[str, Any]]:
    connection = empty_store()
    put_rows(connection, 1, HISTORY, 0, lines)
    found = read_metrics(connection, 1, points)
    connection.close()
    return found


@given(_VALUES, st.integers(1, 20))
def test_at_most_so_many_points_and_the_last_one_kept(values: list[float], points: int) -> None:
    lines = [json.dumps({"_step": n * 10, "loss": value}) for n, value in enumerate(values)]
    (series,) = metrics_of(lines, points)
    assert series["count"] == len(values)
    assert len(series["steps"]) == len(series["values"]) == min(points, len(values))
    assert series["steps"] == sorted(set(series["steps"]))
    assert series["steps"][-1] == (len(values) - 1) * 10
    assert repr(float(series["last"])) == repr(float(values[-1]))


def test_nested_keys_media_and_internals() -> None:
    row = {
        "_step": 0,
        "_runtime": 1.0,
        "loss": 1,
        "train": {"acc": 0.5, "deep": {"x": 2}},
        "image": {"_type": "image-file", "size": 5},
        "text": "x",
        "list": [1, 2],
        "on": True,
    }
    series = {found["key"]: found["values"] for found in metrics_of([json.dumps(row)], 5)}
    assert series == {"loss": [1], "on": [1.0], "train.acc": [0.5], "train.deep.x": [2]}


def test_lines_that_are_no_rows_are_passed_over() -> None:
    lines = ["", "nonsense", "[1]", "3", '{"a":' * 5_000, '{"a": 1, "n": ' + "9" * 5_000 + "}"]
    values = metrics_of([*lines, '{"_step": 9, "a": 2}'], 5)[0]["values"]
    assert values[-1] == 2


def test_steps_that_are_none_fall_back_on_the_rows_number() -> None:
    steps = ["NaN", '"x"', "null", "7"]
    lines = [f'{{"_step": {step}, "a": 1}}' for step in steps]
    assert metrics_of([*lines, '{"a": 1}'], 9)[0]["steps"] == [0, 1, 2, 7, 4]


def test_nothing_at_all() -> None:
    assert metrics_of([], 5) == []
