"""The codec: coordinates to values and back, in W&B's distributions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from runyard.search import beta
from runyard.search.distributions import Distribution
from runyard.search.space import Space
from runyard.search.sweep import read_sweep
from tests.search.wandb_formulas import FORMS

unit = st.floats(0, 1)


def distribution_of(entry: dict[str, Any]) -> Distribution:
    sweep, problems = read_sweep({"method": "random", "parameters": {"x": entry}})
    assert sweep is not None, problems
    return sweep.space.leaves[0].distribution


@pytest.mark.parametrize("form", FORMS)
def test_a_uniform_draw_gives_wandb_s_value(form: str) -> None:
    keys, expected = FORMS[form]
    distribution = distribution_of({"distribution": form, **keys})
    draws = np.random.default_rng(4).random(4000)
    for u in map(float, draws):
        value, wanted = distribution.decode(distribution.pick(u)), expected(u)
        assert type(value) is type(wanted)
        if isinstance(wanted, float):
            assert value == pytest.approx(wanted, rel=1e-9, abs=1e-300)
        else:
            assert value == wanted


@pytest.mark.parametrize("form", FORMS)
@given(u=unit)
def test_a_value_encodes_to_a_place_that_decodes_to_it(form: str, u: float) -> None:
    distribution = distribution_of({"distribution": form, **FORMS[form][0]})
    value = distribution.decode(distribution.pick(u))
    place = distribution.encode(value)
    assert place is not None
    again = distribution.decode(place)
    if isinstance(value, float) and distribution.levels is None and not form.startswith("q_"):
        assert again == pytest.approx(value, rel=1e-6)
        assert distribution.encode(again) == pytest.approx(place, rel=1e-6, abs=1e-9)
    else:
        assert again == value
        assert distribution.encode(again) == place


@given(
    low=st.integers(-(10**6), 10**6),
    span=st.integers(1, 10**9),
    u=unit,
)
def test_whole_numbers_have_both_ends(low: int, span: int, u: float) -> None:
    distribution = distribution_of({"min": low, "max": low + span})
    assert low <= distribution.decode(u) <= low + span
    assert distribution.encode(low) is not None
    assert distribution.decode(distribution.encode(low + span) or 0) == low + span
    assert distribution.encode(low - 1) is None


@given(
    low=st.floats(-1e6, 1e6),
    span=st.floats(1e-3, 1e6),
    q=st.one_of(st.floats(1e-2, 1e3), st.integers(1, 1000)),
    u=unit,
)
def test_rounding_to_any_q_comes_back_to_itself(
    low: float, span: float, q: float, u: float
) -> None:
    distribution = distribution_of(
        {"distribution": "q_uniform", "min": low, "max": low + span, "q": q}
    )
    value = distribution.decode(u)
    place = distribution.encode(value)
    assert place is not None
    assert distribution.decode(place) == value
    assert type(value) is type(q)


@pytest.mark.parametrize("u", [0.0, 1.0, -1.0, 2.0, math.nan])
@pytest.mark.parametrize("form", FORMS)
def test_no_coordinate_gives_infinity_or_a_value_from_nowhere(form: str, u: float) -> None:
    value = distribution_of({"distribution": form, **FORMS[form][0]}).decode(u)
    assert isinstance(value, str) or math.isfinite(value)


def test_probability_0_removes_a_value() -> None:
    entry = {"values": ["a", "b", "c"], "probabilities": [0.5, 0, 0.5]}
    distribution = distribution_of(entry)
    assert distribution.categories == 2
    assert [distribution.decode(index) for index in (0, 1)] == ["a", "c"]
    assert distribution.encode("b") is None
    assert distribution.decode(distribution.pick(1.0)) == "c"


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ({"min": 1, "max": 5}, 6),
        ({"min": 1, "max": 5}, 2.5),
        ({"min": 1, "max": 5}, "2"),
        ({"min": 1, "max": 5}, True),
        ({"min": 1, "max": 5}, None),
        ({"min": 0.1, "max": 0.5}, 0.6),
        ({"min": 0.1, "max": 0.5}, math.nan),
        ({"min": 0.1, "max": 0.5}, 10**400),
        ({"distribution": "log_uniform_values", "min": 0.1, "max": 1}, -1),
        ({"distribution": "log_normal"}, 0),
        ({"distribution": "beta", "a": 2, "b": 2}, 1.5),
        ({"distribution": "q_uniform", "min": 0, "max": 10, "q": 5}, 20),
        ({"values": [1, 2]}, 3),
        ({"values": [1, 2]}, True),
    ],
)
def test_a_value_from_outside_has_no_place(entry: dict[str, Any], value: Any) -> None:
    assert distribution_of(entry).encode(value) is None


def test_an_earlier_run_s_value_between_two_steps_has_a_place() -> None:
    distribution = distribution_of({"distribution": "q_uniform", "min": 0, "max": 10, "q": 5})
    assert distribution.encode(2) == pytest.approx(0.2)


@pytest.mark.parametrize("a", [0.05, 0.5, 1, 2, 30, 2000.0])
@pytest.mark.parametrize("b", [0.05, 0.7, 1, 3, 500.0])
def test_beta_agrees_with_scipy(a: float, b: float) -> None:
    for u in (1e-9, 1e-4, 0.1, 0.5, 0.9, 0.9999, 1 - 1e-9):
        x = beta.quantile(u, a, b)
        # Near 1 a float has no room: u lies between the shares of x's neighbours, 14 digits alike.
        below, above = (
            float(scipy.stats.beta.cdf(x * (1 + side * 2e-14), a, b)) for side in (-1, 1)
        )
        assert below * (1 - 1e-8) <= u <= above * (1 + 1e-8)
        assert beta.cumulative(x, a, b) == pytest.approx(
            float(scipy.stats.beta.cdf(x, a, b)), rel=1e-10, abs=1e-300
        )


def test_the_server_s_part_of_the_search_never_loads_scipy() -> None:
    import subprocess
    import sys

    code = (
        "import sys, numpy, runyard.search.sweep as s\n"
        "sweep, _ = s.read_sweep({'method': 'random', 'parameters': {'x': {'distribution': 'beta'},"
        "'y': {'distribution': 'normal'}}})\n"
        "sweep.space.decode(sweep.space.draw(numpy.random.default_rng(1)))\n"
        "assert 'scipy' not in sys.modules and 'optuna' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_draws_are_decided_by_the_generator() -> None:
    parameters = {form: {"distribution": form, **keys} for form, (keys, _) in FORMS.items()}
    sweep, _ = read_sweep({"method": "random", "parameters": parameters})
    assert sweep is not None
    one, two = (sweep.space.draw(np.random.default_rng(7)) for _ in range(2))
    assert one == two
    assert sweep.space.encode(sweep.space.decode(one)) == pytest.approx(sweep.space.snap(one))


def test_a_point_of_the_wrong_length_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="longer"):
        Space(()).decode((0.5,))
