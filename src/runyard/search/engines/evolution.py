"""CMA-ES, from the library that Optuna uses; categories are drawn by how often they did well.

It gets results in the order in which trials ended, one population at a time, whoever suggested
them. So its state is a function of the results, and can be rebuilt from the ledger.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from runyard.search.engines.coordinates import Array, Coordinates
from runyard.search.engines.distinct import Taken
from runyard.search.engines.result import LARGEST, Result
from runyard.search.space import Point, Space

if TYPE_CHECKING:
    from cmaes import CMA

TRIES = 4  # draws before a repeated point is replaced by a random one
WIDTH = 0.3  # of the first population, the space being 1 wide
RECENT = 8  # populations whose better half decides which categories are good


class EvolutionEngine:
    def __init__(self, space: Space, seed: int) -> None:
        self.coordinates = Coordinates(space)
        self.numeric = np.flatnonzero(~self.coordinates.is_categorical)
        self.seed = seed
        self.taken = Taken(self.coordinates)
        self.restarts = 0
        self.results: list[tuple[Point, float]] = []
        self.waiting: list[tuple[Point, float]] = []
        self.population = 4 + int(3 * np.log(max(1, self.coordinates.count)))
        self.strategy: CMA | None = None
        self.restart()

    def restart(self) -> None:
        from cmaes import CMA

        if not len(self.numeric):
            return
        rng = np.random.default_rng([self.seed, self.restarts, 3])
        middle = np.full(len(self.numeric), 0.5)
        self.strategy = CMA(
            mean=rng.random(len(self.numeric)) if self.restarts else middle,
            sigma=WIDTH,
            bounds=np.tile([0.0, 1.0], (len(self.numeric), 1)),
            population_size=self.population,
            seed=0,
        )
        self.restarts += 1

    def add(self, results: Sequence[Result]) -> None:
        self.taken.add(result.point for result in results)
        for result in results:
            broken = sum(max(0.0, bound) for bound in result.constraints if bound == bound)
            value = result.values[0] if result.is_usable else LARGEST
            # A violated constraint is worse than any value; a smaller violation is better.
            value = LARGEST * (1 + min(1.0, broken / (1 + broken))) if broken else value
            self.waiting.append((result.point, float(np.clip(value, -LARGEST, 2 * LARGEST))))
            if len(self.waiting) == self.population:
                self.tell(self.waiting)
                self.waiting = []

    def tell(self, generation: list[tuple[Point, float]]) -> None:
        self.results = [*self.results, *generation][-RECENT * self.population :]
        if self.strategy is None:
            return
        try:
            with np.errstate(all="ignore"):
                self.strategy.tell(
                    [(np.array(point)[self.numeric], value) for point, value in generation]
                )
                lost = self.strategy.should_stop() or not np.isfinite(self.strategy.mean).all()
        except (AssertionError, FloatingPointError, np.linalg.LinAlgError):
            lost = True
        if lost:
            self.population *= 2
            self.restart()

    def suggest(self, pending: Sequence[Point], count: int, number: int) -> list[Point]:
        made: list[Point] = []
        for index in range(count):
            rng = np.random.default_rng([self.seed, number + index, 4])
            also = self.taken.snapped([*pending, *made])
            rows = (self.row(rng) for _ in range(TRIES))
            made.append(self.taken.first_fresh(rows, also, rng))
        return made

    def row(self, rng: np.random.Generator) -> Array:
        row = np.zeros(self.coordinates.count)
        if self.strategy is not None:
            self.strategy.reseed_rng(int(rng.integers(2**32 - 1)))
            with np.errstate(all="ignore"):
                row[self.numeric] = np.clip(np.nan_to_num(self.strategy.ask(), nan=0.5), 0, 1)
        good = sorted(self.results, key=lambda pair: pair[1])[: (len(self.results) + 1) // 2]
        for leaf in np.flatnonzero(self.coordinates.is_categorical).tolist():
            weights = np.ones(self.coordinates.categories[leaf])
            for point, _ in good:
                weights[int(point[leaf])] += 1
            row[leaf] = rng.choice(len(weights), p=weights / weights.sum())
        return np.asarray(self.coordinates.snap(row[None])[0])
