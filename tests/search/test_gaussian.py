"""The parts of the Gaussian process against what can be worked out otherwise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from runyard.search.engines.acquisition import Acquisition, gain_rate, log_gain, perturbed, sweep
from runyard.search.engines.bayes import kept_points, schedule
from runyard.search.engines.coordinates import Coordinates
from runyard.search.engines.gaussian import (
    Kernel,
    Posterior,
    fit_kernel,
    most_probable,
    pairs_of,
    prior_of,
    surprise,
)
from runyard.search.engines.warping import warp
from runyard.search.sweep import read_sweep

CATEGORICAL = np.array([False, False, True])


def some_points(count: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    rows = rng.random((count, 3))
    rows[:, 2] = rng.integers(3, size=count)
    return rows


def test_the_slope_of_the_likelihood_is_its_slope() -> None:
    x = some_points(12)
    y = np.sin(5 * x[:, 0]) + x[:, 2]
    middle, spread = prior_of(CATEGORICAL)
    pairs = pairs_of(x, CATEGORICAL)
    at = middle + 0.2 * np.arange(9)
    _, slope = surprise(at, pairs, y, middle, spread)
    for index in range(9):
        step = np.zeros(9)
        step[index] = 1e-5
        above = surprise(at + step, pairs, y, middle, spread)[0]
        below = surprise(at - step, pairs, y, middle, spread)[0]
        assert slope[index] == pytest.approx((above - below) / 2e-5, rel=1e-4, abs=1e-5)


def posterior(pending: int = 0) -> Posterior:
    x = some_points(10)
    y = np.cos(4 * x[:, 1]) + 0.5 * x[:, 2]
    kernel = Kernel(np.array([0.5, 0.4, 1.5]), np.array([0.2, 0.3, 1.0]), 1.3, 0.4, 1e-4)
    return Posterior(kernel, x, y, some_points(pending, seed=9), CATEGORICAL)


def test_a_pending_point_leaves_the_mean_and_takes_the_doubt() -> None:
    rows = some_points(6, seed=9)
    mean, doubt = posterior().predict(rows)
    same_mean, less_doubt = posterior(pending=6).predict(rows)
    assert same_mean == pytest.approx(mean)
    assert (less_doubt < 0.05).all()
    assert (doubt > less_doubt).all()


def test_the_slope_of_the_acquisition_is_its_slope() -> None:
    acquisition = Acquisition(posterior(3), -0.2, [(posterior(), 0.4)])
    for row in some_points(5, seed=3):
        value, slope = acquisition.with_slope(row)
        assert value == pytest.approx(acquisition(row[None])[0])
        for index in (0, 1):
            step = np.zeros(3)
            step[index] = 1e-6
            rise = acquisition((row + step)[None])[0] - acquisition((row - step)[None])[0]
            assert slope[index] == pytest.approx(rise / 2e-6, rel=1e-3, abs=1e-4)


def coordinates_of(numbers: int) -> Coordinates:
    parameters = {f"x{index}": {"min": 0.0, "max": 1.0} for index in range(numbers)}
    config = {"method": "bayes", "metric": {"name": "loss"}, "parameters": parameters}
    sweep, problems = read_sweep(config)
    assert sweep is not None, problems
    return Coordinates(sweep.space)


def waves(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.cos(12 * x).sum(axis=1))


def test_the_effects_of_single_parameters_are_learnt_from_all_points() -> None:
    """Five waves, one per parameter: far too many basins for a kernel over all parameters."""
    rng = np.random.default_rng(4)
    x, others = rng.random((80, 5)), rng.random((200, 5))
    y = waves(x) / waves(x).std()
    numbers = np.zeros(5, dtype=bool)
    kernel = fit_kernel(x, y, numbers)
    assert kernel.single_scale > kernel.scale
    means, _ = Posterior(kernel, x, y, np.empty((0, 5)), numbers).predict(others)
    assert np.corrcoef(means, waves(others))[0, 1] > 0.95


def test_noise_is_told_from_the_function() -> None:
    rng = np.random.default_rng(5)
    x = rng.random((60, 2))
    y = 3 * (x[:, 0] - 0.5) + rng.normal(0, 0.5, 60)
    kernel = fit_kernel(x, y, np.zeros(2, dtype=bool))
    assert 0.1 < kernel.noise < 0.5


def test_a_sweep_reaches_a_better_basin_far_away() -> None:
    coordinates = coordinates_of(3)

    class Basins(Acquisition):
        def __call__(self, rows: np.ndarray) -> np.ndarray:
            away = np.minimum(np.abs(rows - 0.1), 0.05 + np.abs(rows - 0.9))
            return np.asarray(-away.sum(axis=1))

    basins = Basins(None, 0.0, [])
    start = np.full(3, 0.9)
    before = float(basins(start[None])[0])
    after = sweep(basins, coordinates, start, before, np.random.default_rng(1))
    assert float(basins(after[None])[0]) > before
    assert after == pytest.approx(0.1, abs=0.05)


def test_some_variations_mix_the_best_points() -> None:
    best = np.array([[0.1, 0.1, 0.1, 0.1], [0.9, 0.9, 0.9, 0.9]])
    rows = perturbed(coordinates_of(4), best, np.random.default_rng(2))
    is_first, is_second = (rows == 0.1).any(axis=1), (rows == 0.9).any(axis=1)
    assert (is_first & is_second).sum() > 5


def test_the_gain_is_right_where_floats_end() -> None:
    """Reference values from the asymptotic series, and from the formula where it holds."""
    at = np.array([-1e4, -100.0, -10.0, -1.0, 0.0, 3.0])
    right = [
        -50000019.33961931,
        -5010.129579,
        -55.553131,
        -2.4851210,
        -0.918938533,
        1.09873967,
    ]
    assert log_gain(at) == pytest.approx(right, rel=1e-5)
    assert gain_rate(-10.0) == pytest.approx(
        float(log_gain(np.array([-9.999]))[0] - log_gain(np.array([-10.001]))[0]) / 0.002, rel=1e-4
    )


def test_warping_keeps_the_order_and_draws_in_the_tail() -> None:
    values = np.array([0.1, 0.2, 0.3, 0.35, 0.4, 0.5, 0.6, 1e6, 1e7, 1e9])
    warped = warp(values)
    assert (np.diff(warped) > 0).all()
    assert abs(warped).max() < 5
    assert warp(np.array([2.0, 2.0, 2.0])).tolist() == [0, 0, 0]
    assert warp(np.array([0.0, 0.0])).tolist() == [0, 0]
    assert warp(np.array([7.0])).tolist() == [0]


def test_the_unit_of_the_metric_does_not_matter() -> None:
    values = np.random.default_rng(1).normal(size=20)
    assert warp(values * 1e-15) == pytest.approx(warp(values), abs=1e-6)
    assert warp(values * 1e15 + 1e14) == pytest.approx(warp(values), abs=1e-6)


def test_hyper_parameters_are_due_after_every_twentieth() -> None:
    assert [schedule(count) for count in (1, 5, 19, 39, 40, 41, 42)] == [1, 5, 19, 39, 40, 40, 42]
    assert schedule(1_000) > 950


def test_the_best_and_the_newest_stay_in_the_model() -> None:
    values = np.random.default_rng(0).random(1_000)
    kept = set(kept_points(values, 400, seed=1).tolist())
    assert len(kept) == 400
    assert set(np.argsort(values)[:200].tolist()) <= kept
    assert set(range(900, 1_000)) <= kept


def test_a_valley_across_the_parameters_is_learnt_along_its_directions() -> None:
    rng = np.random.default_rng(6)
    rotation = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    x, others = rng.random((60, 4)), rng.random((200, 4))

    def valley(rows: np.ndarray) -> np.ndarray:
        return np.asarray(np.abs((rows - 0.5) @ rotation * np.array([6.0, 3.0, 0.3, 0.1])).sum(1))

    numbers = np.zeros(4, dtype=bool)
    y = (valley(x) - valley(x).mean()) / valley(x).std()
    kernel = fit_kernel(x, y, numbers)
    assert kernel.directions is not None
    steepest = kernel.directions[:, np.argmin(kernel.lengths)]
    assert abs(steepest @ rotation[:, 0]) > 0.95
    means, _ = Posterior(kernel, x, y, np.empty((0, 4)), numbers).predict(others)
    along_parameters = most_probable(x, y, numbers, None)[0]
    without, _ = Posterior(along_parameters, x, y, np.empty((0, 4)), numbers).predict(others)
    right = (valley(others) - valley(x).mean()) / valley(x).std()
    assert np.abs(means - right).mean() < 0.8 * np.abs(without - right).mean()


@pytest.mark.parametrize("count", [8, 40])
def test_parameters_that_do_not_form_valleys_keep_their_own_length_scales(count: int) -> None:
    x = some_points(count)
    y = warp(np.abs(x[:, 0] - 0.3))
    kernel = fit_kernel(x, y, CATEGORICAL)
    assert kernel.directions is None or abs(kernel.directions).max() > 0.95


def test_the_slope_along_directions_is_its_slope() -> None:
    straight = posterior()
    angle = 0.6
    directions = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    kernel = replace(straight.kernel, directions=directions)
    x = some_points(10)
    turned = Posterior(kernel, x, x[:, 1], np.empty((0, 3)), CATEGORICAL)
    for row in some_points(4, seed=3):
        _, _, mean_slope, deviation_slope = turned.slopes(row)
        for index in (0, 1):
            step = np.zeros(3)
            step[index] = 1e-6
            above, below = turned.predict((row + step)[None]), turned.predict((row - step)[None])
            assert mean_slope[index] == pytest.approx(
                (above[0] - below[0])[0] / 2e-6, rel=1e-3, abs=1e-4
            )
            assert deviation_slope[index] == pytest.approx(
                (above[1] - below[1])[0] / 2e-6, rel=1e-3, abs=1e-4
            )
