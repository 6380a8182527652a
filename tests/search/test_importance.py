"""Which parameter matters: on functions where that is known."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from runyard.search.importance import Importance, front, importances


def found(places: NDArray[np.float64], categories: list[int], values: object) -> list[Importance]:
    told = importances(places, categories, np.asarray(values, dtype=np.float64))
    assert told is not None
    return told


def test_what_the_value_depends_on_has_the_share() -> None:
    rng = np.random.default_rng(1)
    places = rng.random((200, 4))
    values = 4 * places[:, 0] + 2 * places[:, 1] + 0.1 * rng.standard_normal(200)
    first, second, third, fourth = found(places, [0] * 4, values)
    assert first.share > 0.6 > second.share > 0.1
    assert third.share < 0.02
    assert fourth.share < 0.02
    assert [one.is_sure for one in (first, second)] == [True, True]
    assert first.share + second.share == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("maximize", [False, True])
def test_where_the_best_trials_are(maximize: bool) -> None:
    """Best in between is told as that, also where one side is worse than the other."""
    rng = np.random.default_rng(6)
    places = rng.random((60, 4))
    x, y, z, noise = places.T
    values = 3 * (x - 0.65) ** 2 + y - z + 0.1 * noise
    told = importances(places, [0] * 4, -values if maximize else values, maximize=maximize)
    assert told is not None
    assert [one.best for one in told[1:3]] == ["lowest", "highest"]
    alone = importances(
        places[:, :1], [0], (-1 if maximize else 1) * (x - 0.65) ** 2, maximize=maximize
    )
    assert alone is not None
    assert alone[0].best == "between"


def test_a_valley_counts_though_it_has_no_direction() -> None:
    rng = np.random.default_rng(2)
    places = rng.random((150, 2))
    valley, other = found(places, [0, 0], (places[:, 0] - 0.5) ** 2)
    assert valley.share > 0.8
    assert valley.best == "between"
    assert other.share < 0.05


def test_categories_have_levels_and_no_direction() -> None:
    rng = np.random.default_rng(3)
    places = np.column_stack([rng.integers(0, 3, 120), rng.random(120)]).astype(np.float64)
    values = np.array([5.0, 0.0, 3.0])[places[:, 0].astype(int)] + rng.standard_normal(120) * 0.1
    kind, number = found(places, [3, 0], values)
    assert kind.share > 0.7
    assert kind.best is None
    assert number.share < 0.1


def test_pure_luck_is_not_called_important() -> None:
    rng = np.random.default_rng(4)
    places = rng.random((40, 8))
    told = found(places, [0] * 8, rng.random(40))
    assert sum(one.share for one in told) < 0.35
    assert sum(one.is_sure for one in told) <= 2


def test_one_that_diverged_does_not_decide_everything() -> None:
    rng = np.random.default_rng(5)
    places = rng.random((100, 2))
    values = places[:, 0].copy()
    values[7] = 1e30
    values[8] = np.inf
    first, second = found(places, [0, 0], values)
    assert first.share > 0.8
    assert second.share < 0.1


def test_gaps_and_too_few_trials() -> None:
    rng = np.random.default_rng(6)
    places = rng.random((60, 2))
    values = places[:, 0].copy()
    places[::3, 1] = np.nan
    first, second = found(places, [0, 0], values)
    assert first.share > 0.8 > second.share
    assert importances(places[:5], [0, 0], values[:5]) is None
    assert importances(places, [0, 0], np.ones(60)) is None


def test_shares_are_those_of_a_known_decomposition() -> None:
    """A sum of one function a parameter: each has the share of its own variance, by hand."""
    rng = np.random.default_rng(7)
    places = rng.random((400, 3))
    values = 5 * places[:, 0] + 8 * (places[:, 1] - 0.5) ** 2 + 0.5 * places[:, 2]
    variances = np.array([25 / 12, 64 / 180, 0.25 / 12])
    told = [one.share for one in found(places, [0, 0, 0], values)]
    assert told == pytest.approx(variances / variances.sum(), abs=0.06)


def test_the_front_is_what_nothing_beats() -> None:
    rng = np.random.default_rng(0)
    values = rng.random((200, 3))
    values[5] = np.nan
    on_front = front(values)
    for index in range(200):
        beaten = np.any(
            (values <= values[index]).all(axis=1) & (values < values[index]).any(axis=1)
        )
        assert on_front[index] == (not beaten and index != 5)
    # Two that are the same stand there both.
    assert front(np.array([[1.0, 1.0], [1.0, 1.0], [2.0, 1.0]])).tolist() == [True, True, False]
