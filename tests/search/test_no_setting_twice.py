"""No engine suggests a setting again that was tried or is pending, while the space has others."""

from __future__ import annotations

from typing import Any

import pytest

from runyard.search.engines.choose import make_engine
from runyard.search.engines.result import Result
from runyard.search.space import Point, Space
from runyard.search.sweep import read_sweep

METHODS = ("bayes", "tpe", "cmaes")
# The best is in a corner, which is where a model goes again and again.
CORNER = {
    "lr": {"distribution": "log_uniform_values", "min": 0.01, "max": 10},
    "momentum": {"min": 0.0, "max": 0.95},
}
MIXED = {**CORNER, "layers": {"values": [1, 2, 3]}, "width": {"min": 4, "max": 6}}
SMALL = {"a": {"values": [1, 2, 3]}, "b": {"min": 1, "max": 4}}


def _space(parameters: Any) -> Space:
    sweep, problems = read_sweep(
        {"method": "bayes", "metric": {"name": "loss"}, "parameters": parameters}
    )
    assert sweep is not None, problems
    return sweep.space


def _search(method: str, space: Space, seed: int, trials: int) -> list[Point]:
    """Four at a time; a trial's value is its distance from the far corner."""
    engine = make_engine(method, space, seed)
    pending: list[Point] = []
    suggested: list[Point] = []
    while len(suggested) < trials:
        for point in engine.suggest(pending, 4 - len(pending), len(suggested)):
            suggested.append(point)
            pending.append(point)
        for _ in range(1 + len(suggested) % 3):
            point = pending.pop(0)
            engine.add([Result(len(suggested), point, (-sum(point),))])
    return suggested[:trials]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("parameters", [CORNER, MIXED], ids=["corner", "mixed"])
def test_no_setting_is_suggested_twice(method: str, parameters: Any) -> None:
    space = _space(parameters)
    for seed in range(1):
        settings = [str(space.decode(point)) for point in _search(method, space, seed, 24)]
        assert len(set(settings)) == len(settings)


@pytest.mark.parametrize("method", METHODS)
def test_a_small_space_is_gone_through_before_anything_repeats(method: str) -> None:
    space = _space(SMALL)
    settings = [str(space.decode(point)) for point in _search(method, space, 1, 16)]
    assert len(set(settings[:12])) == 12, "three times four"
    assert len(set(settings)) == 12
