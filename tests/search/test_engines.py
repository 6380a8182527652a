"""Engines on every kind of space: what they say is a point, new, and the same each time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runyard.search.engines.choose import make_engine
from runyard.search.engines.result import Engine, Result
from runyard.search.space import Point, Space
from runyard.search.sweep import read_sweep

METHODS = ("bayes", "tpe", "cmaes", "qmc", "random")
LEARNING = ("bayes", "tpe", "cmaes")

MIXED = {
    "lr": {"distribution": "log_uniform_values", "min": 1e-5, "max": 1.0},
    "depth": {"min": 1, "max": 8},
    "act": {"values": ["relu", "tanh", "gelu"]},
    "drop": {"distribution": "q_uniform", "min": 0.0, "max": 0.5, "q": 0.1},
}
SPACES: dict[str, dict[str, Any]] = {
    "mixed": MIXED,
    "one number": {"x": {"min": 0.0, "max": 1.0}},
    "one category": {"x": {"values": ["only"]}, "y": {"min": 0.0, "max": 1.0}},
    "nothing searched": {"x": {"value": 3}},
    "categories alone": {"a": {"values": [1, 2]}, "b": {"values": ["x", "y", [1], {"k": 2}]}},
    "weighted": {"a": {"values": [1, 2, 3], "probabilities": [0.5, 0.0, 0.5]}},
    "unbounded steps": {"a": {"distribution": "q_normal", "mu": 0, "sigma": 3}},
    "nested": {"net": {"parameters": {"w": {"min": 1, "max": 4}, "d": {"min": 0.0, "max": 1.0}}}},
    "two values": {"a": {"values": [False, True]}},
}


def space_of(parameters: dict[str, Any]) -> Space:
    sweep, problems = read_sweep(
        {"method": "bayes", "metric": {"name": "loss"}, "parameters": parameters}
    )
    assert sweep is not None, problems
    return sweep.space


def drawn(space: Space, count: int, seed: int = 0) -> list[Point]:
    rng = np.random.default_rng(seed)
    return [space.snap(space.draw(rng)) for _ in range(count)]


def is_point(space: Space, point: Point) -> bool:
    return len(point) == len(space.leaves) and all(
        coordinate in range(leaf.categories) if leaf.is_categorical else 0 <= coordinate <= 1
        for leaf, coordinate in zip(space.leaves, point, strict=True)
    )


def run(engine: Engine, space: Space, value: Any, trials: int) -> list[Point]:
    """One worker after the other, each told of before the next is asked."""
    asked = []
    for number in range(trials):
        (point,) = engine.suggest([], 1, number)
        asked.append(point)
        engine.add([Result(number, point, (value(space.decode(point)),))])
    return asked


odd = st.one_of(
    st.just(math.nan),
    st.just(math.inf),
    st.just(-math.inf),
    st.just(0.0),
    st.just(1e308),
    st.just(-1e308),
    st.floats(-10, 10),
)


@pytest.mark.parametrize("method", METHODS)
@given(data=st.data())
@settings(max_examples=15, suppress_health_check=list(HealthCheck))
def test_nothing_that_trials_can_return_makes_an_engine_raise(
    method: str, data: st.DataObject
) -> None:
    space = space_of(SPACES[data.draw(st.sampled_from(sorted(SPACES)))])
    count = data.draw(st.sampled_from([0, 1, 2, 9, 25]))
    constraints = data.draw(st.integers(0, 2))
    values = data.draw(
        st.one_of(
            st.lists(st.lists(odd, max_size=1), min_size=count, max_size=count),
            st.just([[1.0]] * count),
        )
    )
    bounds = st.lists(odd, min_size=constraints, max_size=constraints)
    engine = make_engine(method, space, data.draw(st.integers(0, 2**40)), 1)
    points = drawn(space, count + 3)
    engine.add(
        [
            Result(number, point, tuple(value), tuple(data.draw(bounds)))
            for number, (point, value) in enumerate(zip(points, values, strict=False))
        ]
    )
    suggested = engine.suggest(points[count:], 2, count)
    assert len(suggested) == 2
    assert all(is_point(space, point) for point in suggested)
    for point in suggested:
        space.decode(point)


@given(st.lists(st.lists(odd, min_size=2, max_size=2), min_size=12, max_size=16))
@settings(max_examples=15)
def test_two_metrics_never_make_it_raise(values: list[list[float]]) -> None:
    space = space_of(MIXED)
    engine = make_engine("bayes", space, 1, 2)
    points = drawn(space, len(values))
    engine.add([Result(i, points[i], tuple(value)) for i, value in enumerate(values)])
    assert all(is_point(space, point) for point in engine.suggest(points[:2], 2, 20))


@pytest.mark.parametrize("method", METHODS)
def test_the_same_story_gives_the_same_points(method: str) -> None:
    """Also for an engine that is started again and told everything at once."""
    space = space_of(MIXED)
    points = drawn(space, 40)
    results = [Result(i, p, (sum(p),) if i % 7 else ()) for i, p in enumerate(points)]
    first, second = make_engine(method, space, 5, 1), make_engine(method, space, 5, 1)
    for index, result in enumerate(results):
        first.add([result])
        if index % 5 == 0:
            first.suggest(points[:2], 1, index)
    second.add(results)
    assert first.suggest(points[-3:], 3, 40) == second.suggest(points[-3:], 3, 40)


@pytest.mark.parametrize("method", METHODS)
def test_another_seed_gives_other_points(method: str) -> None:
    space = space_of(SPACES["one number"])
    assert make_engine(method, space, 1, 1).suggest([], 3, 0) != make_engine(
        method, space, 2, 1
    ).suggest([], 3, 0)


def test_the_nth_random_draw_hangs_on_seed_and_n_alone() -> None:
    space = space_of(MIXED)
    engine = make_engine("random", space, 9, 1)
    three = engine.suggest([], 3, 10)
    engine.add([Result(0, three[0], (1.0,))])
    assert engine.suggest(three, 1, 11) == [three[1]]
    assert engine.suggest([], 1, 12) == [three[2]]


def test_quasi_random_points_fill_evenly() -> None:
    space = space_of(SPACES["one number"])
    points = make_engine("qmc", space, 3, 1).suggest([], 16, 0)
    assert sorted(int(point[0] * 16) for point in points) == list(range(16))


@pytest.mark.parametrize("method", LEARNING)
def test_a_finite_space_is_gone_through_without_repeats_and_then_does_not_raise(
    method: str,
) -> None:
    space = space_of({"a": {"values": [1, 2, 3]}, "b": {"min": 1, "max": 7}})
    engine = make_engine(method, space, 2, 1)
    asked = run(engine, space, lambda found: found["a"] * found["b"], 21)
    assert len({tuple(space.decode(point).values()) for point in asked}) == 21
    assert is_point(space, engine.suggest([], 1, 21)[0])


@pytest.mark.parametrize("method", LEARNING)
def test_what_is_pending_is_not_suggested_again(method: str) -> None:
    space = space_of({"a": {"values": list(range(12))}})
    engine = make_engine(method, space, 2, 1)
    pending = engine.suggest([], 11, 0)
    (last,) = engine.suggest(pending, 1, 11)
    assert len({*pending, last}) == 12


@pytest.mark.parametrize("method", LEARNING)
def test_a_bowl_is_found_the_bottom_of(method: str) -> None:
    space = space_of({f"x{i}": {"min": 0.0, "max": 1.0} for i in range(3)})
    target = np.array([0.2, 0.7, 0.6])

    def value(found: dict[str, Any]) -> float:
        return float(((np.array(list(found.values())) - target) ** 2).sum())

    asked = run(make_engine(method, space, 4, 1), space, value, 100)
    values = [value(space.decode(point)) for point in asked]
    by_chance = [value(space.decode(point)) for point in drawn(space, 1_000)]
    assert min(values) < min(by_chance) / 2
    assert np.median(values[50:]) < np.median(by_chance) / 5


@pytest.mark.parametrize(("method", "trials"), [("bayes", 40), ("tpe", 60), ("cmaes", 200)])
def test_a_constraint_is_kept_to(method: str, trials: int) -> None:
    """The best value of all lies where the constraint is broken; of those that keep it, 0.5 is."""
    space = space_of({"x": {"min": 0.0, "max": 1.0}, "y": {"min": 0.0, "max": 1.0}})
    engine = make_engine(method, space, 3, 1)
    kept = []
    for number in range(trials):
        (point,) = engine.suggest([], 1, number)
        found = space.decode(point)
        value, broken = found["x"] + found["y"], 0.5 - found["x"]
        engine.add([Result(number, point, (value,), (broken,))])
        if broken <= 0:
            kept.append(value)
    assert len(kept) > 10
    assert min(kept) < 0.6


def test_two_metrics_spread_over_the_front() -> None:
    """x² against (x - 1)²: every x of [0, 1] is on the front, and y should be near 0."""
    space = space_of({"x": {"min": -1.0, "max": 2.0}, "y": {"min": 0.0, "max": 1.0}})
    engine = make_engine("tpe", space, 3, 2)
    late = []
    for number in range(80):
        (point,) = engine.suggest([], 1, number)
        found = space.decode(point)
        values = (found["x"] ** 2 + found["y"], (found["x"] - 1) ** 2 + found["y"])
        engine.add([Result(number, point, values)])
        late.append(found)
    late = late[40:]
    assert sum(-0.2 <= found["x"] <= 1.2 for found in late) > 28
    assert min(found["x"] for found in late) < 0.3
    assert max(found["x"] for found in late) > 0.7
    assert np.median([found["y"] for found in late]) < 0.3


@pytest.mark.parametrize("method", LEARNING)
def test_ten_thousand_results(method: str) -> None:
    space = space_of(MIXED)
    points = drawn(space, 50)
    engine = make_engine(method, space, 1, 1)
    engine.add([Result(i, points[i % 50], (float(i % 13),)) for i in range(10_000)])
    assert is_point(space, engine.suggest(points[:3], 1, 10_000)[0])


def test_a_thousand_results_are_thinned_for_the_model() -> None:
    space = space_of({f"x{i}": {"min": 0.0, "max": 1.0} for i in range(2)})
    points = drawn(space, 1_000)
    engine = make_engine("bayes", space, 1, 1)
    engine.add(
        [Result(i, p, ((p[0] - 0.3) ** 2 + (p[1] - 0.6) ** 2,)) for i, p in enumerate(points)]
    )
    (x, y) = min(engine.suggest([], 4, 1_000), key=lambda p: (p[0] - 0.3) ** 2 + (p[1] - 0.6) ** 2)
    assert abs(x - 0.3) < 0.05
    assert abs(y - 0.6) < 0.05


def test_forty_dimensions() -> None:
    space = space_of({f"x{i}": {"min": 0.0, "max": 1.0} for i in range(40)})
    engine = make_engine("bayes", space, 1, 1)
    points = drawn(space, 30)
    engine.add([Result(i, point, (sum(point),)) for i, point in enumerate(points)])
    assert is_point(space, engine.suggest([], 1, 30)[0])
