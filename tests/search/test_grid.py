"""Grids as arithmetic."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from runyard.search.by_number import index_of, point_at
from runyard.search.space import Space
from runyard.search.sweep import read_sweep


def space_of(parameters: dict[str, Any]) -> Space:
    sweep, problems = read_sweep({"method": "grid", "parameters": parameters})
    assert sweep is not None, problems
    return sweep.space


def test_the_name_that_sorts_last_varies_fastest() -> None:
    space = space_of({"b": {"values": [2, 1]}, "a": {"values": ["x", "y"]}, "c": {"value": 0}})
    points = [point_at(space, index) for index in range(4)]
    assert [(point["a"], point["b"], point["c"]) for point in points] == [
        ("x", 2, 0),
        ("x", 1, 0),
        ("y", 2, 0),
        ("y", 1, 0),
    ]


def test_groups_are_walked_in_the_order_of_their_names() -> None:
    space = space_of(
        {
            "opt": {"parameters": {"lr": {"values": [1, 2]}, "b": {"values": [3, 4]}}},
            "a": {"values": [5, 6]},
            "z": {"values": [7, 8]},
        }
    )
    expected = itertools.product([5, 6], [3, 4], [1, 2], [7, 8])
    for index, (a, b, lr, z) in enumerate(expected):
        assert point_at(space, index) == {"a": a, "opt": {"b": b, "lr": lr}, "z": z}


def test_ten_million_points_cost_nothing_until_drawn() -> None:
    space = space_of({name: {"min": 0, "max": 9_999_999} for name in ("a", "b")})
    assert space.size == 10**14
    assert point_at(space, 10**14 - 1) == {"a": 9_999_999, "b": 9_999_999}
    assert index_of(space, {"a": 9_999_999, "b": 9_999_998}) == 10**14 - 2


def test_a_rounded_range_leaves_its_max_out_as_numpy_does() -> None:
    for low, high, q in [(0, 1, 0.5), (0.0, 1.0, 0.1), (10, 31, 10), (0.1, 0.75, 0.05), (1, 2, 5)]:
        parameters = {"x": {"distribution": "q_uniform", "min": low, "max": high, "q": q}}
        space = space_of(parameters)
        values = [point_at(space, index)["x"] for index in range(space.size or 0)]
        assert values == np.arange(low, high, q).tolist()
        assert [type(value) for value in values] == [
            type(value) for value in np.arange(low, high, q).tolist()
        ]


@pytest.mark.parametrize(
    "settings",
    [
        {"bs": 64, "net": {"kind": "cnn"}, "one": 5},
        {"bs": 64.0, "net": {"kind": "cnn", "added": "by a program"}, "one": 5.0, "more": 1},
    ],
)
def test_an_earlier_run_is_found_as_wandb_finds_it(settings: dict[str, Any]) -> None:
    space = space_of(
        {
            "bs": {"values": [32, 64]},
            "net": {"values": [{"kind": "mlp"}, {"kind": "cnn"}]},
            "one": {"values": [5]},
            "constant": {"value": "not compared"},
        }
    )
    assert index_of(space, settings) == 3


@pytest.mark.parametrize(
    "settings",
    [{"bs": 64}, {"bs": 63, "one": 5}, {"bs": "64", "one": 5}, {"bs": True, "one": 5}, {"one": 5}],
)
def test_what_is_no_point_is_none(settings: dict[str, Any]) -> None:
    space = space_of({"bs": {"values": [1, 64]}, "one": {"values": [5]}})
    assert index_of(space, settings) is None


def test_a_value_that_stands_twice_is_one_point() -> None:
    space = space_of({"a": {"values": [1, 1.0, 2]}})
    assert space.size == 2


def test_constants_alone_are_one_point() -> None:
    space = space_of({"a": {"value": 1}, "b": {"values": [2]}})
    assert space.size == 1
    assert point_at(space, 0) == {"a": 1, "b": 2}
    with pytest.raises(IndexError, match="no point 1"):
        point_at(space, 1)


def test_settings_belong_to_who_asked() -> None:
    space = space_of({"a": {"values": [[1], [2]]}, "b": {"value": {"c": 1}}})
    point_at(space, 0)["a"].append(7)
    point_at(space, 0)["b"]["c"] = 7
    assert point_at(space, 0) == {"a": [1], "b": {"c": 1}}
