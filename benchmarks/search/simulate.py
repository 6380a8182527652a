"""Trials on workers that finish at random times, as a sweep sees them."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np


class Searcher(Protocol):
    """Hands out settings for trials, and hears of their values in the order of ending."""

    def ask(self, trial: int) -> dict[str, Any]: ...
    def tell(self, trial: int, value: float) -> None: ...


def simulate(
    searcher: Searcher,
    value: Callable[[dict[str, Any]], float],
    workers: int,
    trials: int,
    seed: int,
) -> list[float]:
    """The value of each trial, in the order in which they ended."""
    # Durations hang on the trial's number alone, so that every engine meets the same ones.
    durations = np.random.default_rng([seed, 99]).lognormal(0.0, 0.4, trials)
    ending: list[tuple[float, int, float]] = []
    values: list[float] = []
    now, asked = 0.0, 0
    while len(values) < trials:
        while asked < trials and len(ending) < workers:
            result = value(searcher.ask(asked))
            heapq.heappush(ending, (now + durations[asked], asked, result))
            asked += 1
        now, trial, result = heapq.heappop(ending)
        searcher.tell(trial, result)
        values.append(result)
    return values
