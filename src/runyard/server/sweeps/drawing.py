"""New settings: the next of the grid, a random one, or one that was prepared."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from runyard.search.grid import point_at
from runyard.search.names import trial_name
from runyard.search.space import Point
from runyard.search.sweep import Sweep
from runyard.server.store import trials
from runyard.server.store.claims import Drawn

# Their settings follow from a number alone; others need to know of results.
BY_NUMBER = ("grid", "random")


class Drawing:
    """Draws the settings of one sweep's claims. Prepared points are taken in their order."""

    def __init__(self, key: int, sweep: Sweep, seed: int, prepared: Sequence[Point] = ()) -> None:
        self._key = key
        self._sweep = sweep
        self._seed = seed
        self._prepared = list(prepared)

    @property
    def left(self) -> list[Point]:
        """Prepared points that nobody took."""
        return self._prepared

    def setting(self, number: int) -> Drawn | None:
        space = self._sweep.space
        if self._sweep.method == "grid":
            return Drawn(None, point_at(space, number))
        if self._sweep.method == "random":
            point = space.draw(np.random.default_rng([self._seed, number]))
        elif self._prepared:
            point = self._prepared.pop(0)
        else:
            return None
        return Drawn(point, space.decode(point))

    def with_seed(self, settings: Mapping[str, Any], seed: int) -> dict[str, Any]:
        options = self._sweep.options
        if not options.seeds:
            return dict(settings)
        return {**settings, options.seed_parameter: options.seeds[seed]}

    def name(self, connection: sqlite3.Connection, settings: Mapping[str, Any]) -> str:
        options = self._sweep.options
        swept = self._sweep.space.swept(settings)
        if options.seeds:
            swept[options.seed_parameter] = settings[options.seed_parameter]
        return trial_name(swept, partial(trials.is_taken, connection, self._key), options.name)


def quasi_random(dimensions: int, seed: int, number: int) -> list[float]:
    """Point `number` of an additive recurrence: spread evenly from the first one on.

    Each coordinate goes on by a power of the root of x^(d+1) = x + 1, from a start by the seed.
    """
    root = 2.0
    for _ in range(40):
        root = (1.0 + root) ** (1.0 / (dimensions + 1))
    starts = np.random.default_rng(seed).random(dimensions)
    steps = (1.0 / root) ** np.arange(1, dimensions + 1)
    found: list[float] = ((starts + (number + 1) * steps) % 1.0).tolist()
    return found
