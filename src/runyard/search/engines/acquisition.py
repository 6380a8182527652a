"""The acquisition function (log of the expected improvement), and the search for its maximum."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from runyard.search.engines.coordinates import Array, Coordinates
from runyard.search.engines.gaussian import Posterior

SPREAD = 512  # Sobol points over the whole space
NEAR = 512  # perturbations of the best
BEST = 8  # how many of the best are perturbed
REFINED = 3  # how many candidates are refined
ROUNDS = 4  # of going to the best neighbour among categories and steps
CROSSED = 0.25  # share of the perturbations that first mix several of the best
SWEPT = 0.5  # share of the suggestions for which the best candidate is swept
SWEEPS, PLACES = 2, 16  # rounds, and places per number in each
STEPS = 20  # of the refinement along smooth coordinates


class Acquisition:
    """Log of: expected improvement over `best`, times the probability that constraints hold."""

    def __init__(
        self, value: Posterior | None, best: float, constraints: list[tuple[Posterior, float]]
    ):
        self.value = value
        self.best = best
        self.constraints = constraints  # with the bound at which each just holds

    def __call__(self, rows: Array) -> Array:
        from scipy.special import log_ndtr

        total = np.zeros(len(rows))
        if self.value is not None:
            mean, deviation = self.value.predict(rows)
            total += np.log(deviation) + log_gain((self.best - mean) / deviation)
        for posterior, bound in self.constraints:
            mean, deviation = posterior.predict(rows)
            total += log_ndtr((bound - mean) / deviation)
        return total

    def with_slope(self, row: Array) -> tuple[float, Array]:
        from scipy.special import log_ndtr

        total, slope = 0.0, np.zeros_like(row)
        if self.value is not None:
            mean, deviation, mean_slope, deviation_slope = self.value.slopes(row)
            z = (self.best - mean) / deviation
            total = float(np.log(deviation) + log_gain(np.array([z]))[0])
            z_slope = -(mean_slope + z * deviation_slope) / deviation
            slope = deviation_slope / deviation + gain_rate(z) * z_slope
        for posterior, bound in self.constraints:
            mean, deviation, mean_slope, deviation_slope = posterior.slopes(row)
            z = (bound - mean) / deviation
            log_share = float(log_ndtr(z))
            total += log_share
            density = np.exp(np.clip(-0.5 * z * z - 0.9189385332046727 - log_share, -700, 700))
            slope = slope - density * (mean_slope + z * deviation_slope) / deviation
        return total, slope


def log_gain(z: Array) -> Array:
    """log(φ(z) + z Φ(z)), also if φ(z) + z Φ(z) is far below the smallest float."""
    from scipy.special import erfcx, ndtr

    z = np.asarray(z, dtype=float)
    density = -0.5 * z * z - 0.9189385332046727
    safe = np.clip(z, -1e3, None)
    near = np.exp(np.maximum(density, -700)) + safe * ndtr(safe)
    ratio = 1.2533141373155001 * erfcx(-np.minimum(safe, 0.0) * 0.7071067811865476)
    tail = np.where(
        z > -1e3, np.maximum(1 + np.minimum(safe, 0.0) * ratio, 1e-300), 1 / (z * z + 1e-300)
    )
    return np.where(z > -1, np.log(np.maximum(near, 1e-300)), density + np.log(tail))


def gain_rate(z: float) -> float:
    """Derivative of log_gain."""
    from scipy.special import erfcx, ndtr

    if z > -1:
        return float(ndtr(z) / (np.exp(-0.5 * z * z - 0.9189385332046727) + z * ndtr(z)))
    if z < -1e3:
        return -z
    ratio = 1.2533141373155001 * erfcx(-z * 0.7071067811865476)
    return float(ratio / max(1 + z * ratio, 1e-300))


def perturbed(coordinates: Coordinates, best: Array, rng: np.random.Generator) -> Array:
    """Points that differ from one of the best in some coordinates, by various amounts."""
    count = coordinates.count
    rows = best[rng.integers(len(best), size=NEAR)].copy()
    mates = best[rng.integers(len(best), size=(NEAR, count)), np.arange(count)]
    is_crossed = (rng.random((NEAR, 1)) < CROSSED) & (rng.random((NEAR, count)) < 0.5)
    rows = np.where(is_crossed, mates, rows)
    share = rng.choice([1 / count, min(1.0, 3 / count), 0.5, 1.0], size=(NEAR, 1))
    moved = rng.random((NEAR, count)) < share
    moved[np.arange(NEAR), rng.integers(count, size=NEAR)] = True
    width = 10 ** rng.uniform(-2.5, -0.5, size=(NEAR, 1))
    shifted = np.abs(rows + width * rng.standard_normal((NEAR, count)))
    shifted = np.clip(np.where(shifted > 1, 2 - shifted, shifted), 0.0, 1.0)
    others = np.floor(rng.random((NEAR, count)) * np.maximum(coordinates.categories, 1))
    rows = np.where(moved, np.where(coordinates.is_categorical, others, shifted), rows)
    return coordinates.snap(rows)


def maximise(
    acquisition: Acquisition,
    coordinates: Coordinates,
    best: Array,
    rng: np.random.Generator,
) -> list[Array]:
    """Rows in order, the most promising first; the first few are refined."""
    rows = np.vstack(
        [
            coordinates.sobol(SPREAD, rng.integers(2**32, size=4).tolist()),
            perturbed(coordinates, best, rng),
            best,
        ]
    )
    scores = acquisition(rows)
    order = np.argsort(-scores, kind="stable")
    chosen = distant(rows, order, REFINED)
    if rng.random() < SWEPT:
        top = chosen[0]
        rows[top] = sweep(acquisition, coordinates, rows[top], float(scores[top]), rng)
    refined = [refine(acquisition, coordinates, rows[index], rng) for index in chosen]
    refined.sort(key=lambda pair: -pair[1])
    return [*(row for row, _ in refined), *rows[order[:64]]]


def sweep(
    acquisition: Acquisition,
    coordinates: Coordinates,
    row: Array,
    score: float,
    rng: np.random.Generator,
) -> Array:
    """Moves each number to its best place over the whole range: basins may lie far apart."""
    numbers = np.flatnonzero(~coordinates.is_categorical)
    for _ in range(SWEEPS if len(numbers) else 0):
        places = (np.arange(PLACES) + rng.random((len(numbers), PLACES))) / PLACES
        rows = np.repeat(row[None], places.size, axis=0)
        rows[np.arange(len(rows)), np.repeat(numbers, PLACES)] = places.ravel()
        rows = coordinates.snap(rows)
        scores = acquisition(rows)
        by_number = scores.reshape(places.shape)
        best = by_number.argmax(axis=1) + PLACES * np.arange(len(numbers))
        together = np.where(by_number.max(axis=1) > score, rows[best, numbers], row[numbers])
        moved = np.array([row, rows[scores.argmax()]])
        moved[0, numbers] = together
        values = acquisition(moved)
        if values.max() <= score:
            break
        row, score = moved[values.argmax()], float(values.max())
    return row


def distant(rows: Array, order: np.ndarray[tuple[int], np.dtype[np.intp]], count: int) -> list[int]:
    """The best rows, without those next to a better row."""
    chosen: list[int] = []
    for index in order[:256].tolist():
        if all(np.abs(rows[index] - rows[other]).max() > 0.05 for other in chosen):
            chosen.append(index)
        if len(chosen) == count:
            break
    return chosen


def refine(
    acquisition: Acquisition, coordinates: Coordinates, row: Array, rng: np.random.Generator
) -> tuple[Array, float]:
    score = float(acquisition(row[None])[0])
    for _ in range(ROUNDS):
        before = score
        row, score = slide(acquisition.with_slope, coordinates, row, score)
        around = coordinates.neighbours(row, rng)
        if len(around):
            scores = acquisition(around)
            at = int(np.argmax(scores))
            if scores[at] > score:
                row, score = around[at], float(scores[at])
        if score <= before + 1e-6 or not len(around):
            break
    return row, score


def slide(
    with_slope: Callable[[Array], tuple[float, Array]],
    coordinates: Coordinates,
    row: Array,
    score: float,
) -> tuple[Array, float]:
    """Climb along the smooth coordinates; the others stay fixed."""
    from scipy.optimize import minimize

    smooth = coordinates.is_smooth
    if not smooth.any():
        return row, score

    def downhill(part: Array) -> tuple[float, Array]:
        whole = row.copy()
        whole[smooth] = part
        value, slope = with_slope(whole)
        return -value, -slope[smooth]

    result = minimize(
        downhill,
        row[smooth],
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, 1.0)] * int(smooth.sum()),
        options={"maxiter": STEPS, "maxfun": 2 * STEPS},
    )
    if not np.isfinite(result.fun) or -result.fun <= score:
        return row, score
    moved = row.copy()
    moved[smooth] = np.clip(result.x, 0.0, 1.0)
    return moved, -float(result.fun)
