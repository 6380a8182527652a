"""How likely `bayes` thinks it is that a new setting beats the best one."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runyard.search.by_number import quasi_random
from runyard.search.engines.bayes import BayesEngine
from runyard.search.engines.result import Result
from runyard.search.space import Point
from runyard.search.sweep import read_sweep

SHARE = 0.01


def engine_for(parameters: int) -> BayesEngine:
    space = {f"x{index}": {"min": 0.0, "max": 1.0} for index in range(parameters)}
    sweep, _ = read_sweep({"method": "bayes", "metric": {"name": "loss"}, "parameters": space})
    assert sweep is not None
    return BayesEngine(sweep.space, 1)


def bowl(point: Point) -> float:
    return 1.0 + sum((x - 0.3) ** 2 for x in point)


def tell(engine: BayesEngine, points: list[Point], value: Callable[[Point], float] = bowl) -> None:
    before = len(engine.results)
    engine.add([Result(before + n, point, (value(point),)) for n, point in enumerate(points)])


def spread(engine: BayesEngine, count: int) -> list[Point]:
    return [tuple(quasi_random(engine.coordinates.count, 5, number)) for number in range(count)]


def test_it_falls_while_a_search_comes_to_its_end() -> None:
    engine = engine_for(3)
    tell(engine, [point for point in spread(engine, 200) if bowl(point) > 1.15][:30])
    before = engine.chance_of_better(SHARE)
    assert before is not None
    assert before > 0.5
    for number in range(30, 60):
        tell(engine, engine.suggest([], 1, number))
    after = engine.chance_of_better(SHARE)
    assert after is not None
    assert after < 0.02
    # Of a better value by much less, the model is not so sure.
    finer = engine.chance_of_better(1e-9)
    assert finer is not None
    assert finer > after


def test_noise_is_no_promise() -> None:
    """The best value of many is luck; the model does not take it for the function's."""
    engine = engine_for(2)
    tell(engine, spread(engine, 60), lambda point: 1.0 + 0.05 * math.sin(1e6 * sum(point)))
    chance = engine.chance_of_better(0.2)
    assert chance is not None
    assert chance < 0.05


@pytest.mark.parametrize("parameters", [1, 8])
def test_few_results_say_nothing(parameters: int) -> None:
    engine = engine_for(parameters)
    needed = max(30, 5 * parameters)
    tell(engine, spread(engine, needed - 1))
    assert engine.chance_of_better(SHARE) is None
    tell(engine, [(0.5,) * parameters])
    assert engine.chance_of_better(SHARE) is not None


def test_results_without_a_value_do_not_count() -> None:
    engine = engine_for(1)
    engine.add([Result(n, (n / 40,), ()) for n in range(20)])
    tell(engine, spread(engine, 29))
    assert engine.chance_of_better(SHARE) is None


def test_constraints_are_not_judged() -> None:
    engine = engine_for(1)
    engine.add([Result(n, (n / 40,), (1.0,), (0.5,)) for n in range(40)])
    assert engine.chance_of_better(SHARE) is None


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.one_of(st.floats(-1e100, 1e100), st.sampled_from([0.0, 1.0, -1.0, 1e-300])),
        min_size=30,
        max_size=40,
    )
)
def test_it_is_a_chance_whatever_the_values(values: list[float]) -> None:
    engine = engine_for(1)
    engine.add([Result(n, (n / 40,), (value,)) for n, value in enumerate(values)])
    chance = engine.chance_of_better(SHARE)
    assert chance is not None
    assert 0.0 <= chance <= 1.0
