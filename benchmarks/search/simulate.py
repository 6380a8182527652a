"""Trials on workers that finish at random times, as a sweep sees them."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np


class Searcher(Protocol):
    """Hands out settings for trials, and hears of their values in the order of ending."""

    def ask(self, trial: int) -> dict[str, Any]: ...
    def tell(self, trial: int, value: float) -> None: ...


class Trial(NamedTuple):
    settings: dict[str, Any]
    value: float


def simulate(
    searcher: Searcher,
    value: Callable[[dict[str, Any]], float],
    workers: int,
    trials: int,
    seed: int,
) -> list[Trial]:
    """The trials, in the order in which they ended."""
    # Durations hang on the trial's number alone, so that every engine meets the same ones.
    durations = np.random.default_rng([seed, 99]).lognormal(0.0, 0.4, trials)
    ends: list[tuple[float, int]] = []
    started: list[Trial] = []
    ended: list[Trial] = []
    now = 0.0
    while len(ended) < trials:
        while len(started) < trials and len(ends) < workers:
            number = len(started)
            settings = searcher.ask(number)
            heapq.heappush(ends, (now + durations[number], number))
            started.append(Trial(settings, value(settings)))
        now, number = heapq.heappop(ends)
        searcher.tell(number, started[number].value)
        ended.append(started[number])
    return ended
