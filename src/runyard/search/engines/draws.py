"""Methods that use no results: independent draws, and points that fill the space evenly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runyard.search.engines.result import Result
from runyard.search.engines.sobol import sobol
from runyard.search.space import Point, Space


class _Blind:
    """Accepts results, but learns nothing from them."""

    def __init__(self, space: Space, seed: int) -> None:
        self.space = space
        self.seed = seed

    def add(self, results: Sequence[Result]) -> None:
        del results


class RandomEngine(_Blind):
    """The n-th draw depends only on the seed and on n."""

    def suggest(self, pending: Sequence[Point], count: int, number: int) -> list[Point]:
        del pending
        return [
            self.space.draw(np.random.default_rng([self.seed, number + index]))
            for index in range(count)
        ]


class QuasiRandomEngine(_Blind):
    """The n-th point of a scrambled Sobol sequence, by each parameter's own distribution."""

    def suggest(self, pending: Sequence[Point], count: int, number: int) -> list[Point]:
        del pending
        draws = sobol(len(self.space.leaves), count, [self.seed], number)
        return [self.space.place(row.tolist()) for row in draws]
