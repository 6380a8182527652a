"""`bayes`: a Gaussian process, with draws of TPE mixed in.

Hyper-parameters are those of the first n results; n grows by a twentieth at a time. They depend
only on the results, so a restarted engine continues as the first one would have.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runyard.search.engines.acquisition import BEST, Acquisition, maximise
from runyard.search.engines.coordinates import Array, Coordinates
from runyard.search.engines.distinct import Taken
from runyard.search.engines.gaussian import Kernel, Posterior, fit_kernel
from runyard.search.engines.outlook import chance_of_better, is_enough
from runyard.search.engines.result import LARGEST, Result
from runyard.search.engines.tpe import TpeEngine
from runyard.search.engines.warping import standardise, warp
from runyard.search.space import Point, Space

TPE_SHARE = 0.3
MOST_RESULTS, MOST_LEAVES = 2_000, 30  # beyond these, only TPE suggests
KEPT = 300  # points in the model
FITTED = 150  # points that choose the hyper-parameters
REFITS = 20  # hyper-parameters are chosen again after every n / REFITS results


class BayesEngine:
    def __init__(self, space: Space, seed: int) -> None:
        self.coordinates = Coordinates(space)
        self.seed = seed
        self.tpe = TpeEngine(space, seed)
        self.taken = Taken(self.coordinates)
        self.results: list[Result] = []
        self.usable = 0
        self.width = 1  # the value, and the constraints
        self.kernels: tuple[int, list[Kernel]] = (0, [])
        self.start = max(8, min(2 * self.coordinates.count, 20))

    def add(self, results: Sequence[Result]) -> None:
        self.tpe.add(results)
        self.taken.add(result.point for result in results)
        self.results.extend(results)
        for result in results:
            self.usable += result.is_usable
            self.width = max(self.width, 1 + len(result.constraints))

    def suggest(self, pending: Sequence[Point], count: int, number: int) -> list[Point]:
        made: list[Point] = []
        for index in range(count):
            made.append(self.suggest_one([*pending, *made], number + index))
        return made

    def suggest_one(self, pending: Sequence[Point], number: int) -> Point:
        rng = np.random.default_rng([self.seed, number, 2])
        also = self.taken.snapped(pending)
        if self.usable < self.start // 4 + 1 or self.usable + len(pending) < self.start:
            rows = [self.coordinates.sobol(1, [self.seed], number)[0]]
            return self.taken.first_fresh(rows, also, rng)
        large = len(self.results) > MOST_RESULTS or self.coordinates.count > MOST_LEAVES
        if large or not self.coordinates.count or rng.random() < TPE_SHARE:
            return self.tpe.suggest(pending, 1, number)[0]
        return self.taken.first_fresh(self.model_rows(pending, rng), also, rng)

    def model_rows(self, pending: Sequence[Point], rng: np.random.Generator) -> list[Array]:
        targets = targets_of(self.results, self.width)
        indices = kept_points(targets[:, 0], KEPT, self.seed)
        x, targets = points(self.results)[indices], targets[indices]
        waiting = np.array(list(pending[-KEPT:]), dtype=float).reshape(-1, self.coordinates.count)
        posteriors = []
        bounds = []
        for index, kernel in enumerate(self.fitted()):
            column, bound = scaled(targets[:, index], is_constraint=index > 0)
            bounds.append(bound)
            posteriors.append(
                Posterior(kernel, x, column, waiting, self.coordinates.is_categorical)
            )
        feasible = (targets[:, 1:] <= 0).all(axis=1)
        known = posteriors[0].predict(posteriors[0].x)[0]
        held = np.append(feasible, np.ones(len(waiting), dtype=bool))
        best = float(known[held].min()) if feasible.any() else 0.0
        acquisition = Acquisition(
            posteriors[0] if feasible.any() else None,
            best,
            list(zip(posteriors[1:], bounds[1:], strict=True)),
        )
        # With noise, the best value may be luck: half of the best are the best predictions.
        by_value = np.lexsort((targets[:, 0], ~feasible))[: BEST // 2]
        by_mean = np.lexsort((known[: len(targets)], ~feasible))[:BEST]
        order = list(dict.fromkeys([*by_value.tolist(), *by_mean.tolist()]))[:BEST]
        return maximise(acquisition, self.coordinates, x[order], rng)

    def chance_of_better(self, share: float) -> float | None:
        """That a new setting beats the best by more than this share; None: the model cannot say."""
        count = self.coordinates.count
        if not count or count > MOST_LEAVES or self.width > 1:
            return None
        if len(self.results) > MOST_RESULTS or not is_enough(self.usable, count):
            return None
        values = targets_of(self.results, self.width)[:, 0]
        indices = kept_points(values, KEPT, self.seed)
        return chance_of_better(
            self.fitted()[0],
            points(self.results)[indices],
            values[indices],
            self.coordinates,
            share,
            self.seed,
        )

    def fitted(self) -> list[Kernel]:
        """One kernel for the value and one for each constraint."""
        due = schedule(len(self.results))
        if self.kernels[0] != due or len(self.kernels[1]) != self.width:
            targets = targets_of(self.results[:due], self.width)
            indices = kept_points(targets[:, 0], FITTED, self.seed)
            x = points(self.results[:due])[indices]
            self.kernels = (
                due,
                [
                    fit_kernel(
                        x,
                        scaled(targets[indices, index], is_constraint=index > 0)[0],
                        self.coordinates.is_categorical,
                    )
                    for index in range(self.width)
                ],
            )
        return self.kernels[1]


def targets_of(results: Sequence[Result], width: int) -> Array:
    """Value and constraints of each result; a failed one counts as the worst seen."""
    rows = np.full((len(results), width), np.nan)
    for index, result in enumerate(results):
        row = [result.values[0] if result.is_usable else np.nan, *result.constraints]
        rows[index, : len(row)] = row
    rows[~np.isfinite(rows)] = np.nan
    np.clip(rows, -LARGEST, LARGEST, out=rows)
    for column in rows.T:
        missing = np.isnan(column)
        column[missing] = np.nanmax(column) if not missing.all() else 0.0
    return rows


def points(results: Sequence[Result]) -> Array:
    return np.array([result.point for result in results], dtype=float)


def scaled(column: Array, is_constraint: bool) -> tuple[Array, float]:
    """A column scaled for the model, and the scaled value of zero."""
    if not is_constraint:
        return warp(column), 0.0
    deviation = float(column.std())
    if deviation <= 1e-12:
        return np.sign(column), 0.0
    return standardise(column), -float(column.mean()) / deviation


def schedule(results: int) -> int:
    """The last count of results at which hyper-parameters were due."""
    due = 1
    while due + max(1, due // REFITS) <= results:
        due += max(1, due // REFITS)
    return min(due, results)


def kept_points(values: Array, most: int, seed: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """All of them if they are few; else the best half, the newest quarter, and some of the rest."""
    count = len(values)
    if count <= most:
        return np.arange(count)
    order = np.argsort(values, kind="stable")
    chosen = set(order[: most // 2].tolist()) | set(range(count - most // 4, count))
    rest = np.array(sorted(set(range(count)) - chosen))
    drawn = np.random.default_rng([seed, count]).choice(rest, most - len(chosen), replace=False)
    return np.array(sorted(chosen | set(drawn.tolist())))
