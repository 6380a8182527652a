"""No setting of a sweep is handed out twice while there are others.

The search sees to that for what it is told of. What it is told may be a moment old, though, and
points of the even spread come from elsewhere: here everything comes by that is handed out.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

import numpy as np

from runyard.search.by_number import quasi_random
from runyard.search.engines.coordinates import Coordinates
from runyard.search.engines.distinct import Taken
from runyard.search.space import Point, Space
from runyard.server.store import json_text
from runyard.server.store.store import Store
from runyard.server.sweeps.ledger import results

log = logging.getLogger(__name__)


class HandedOut:
    """What one sweep has handed out. Only its claim queue asks, one batch of claims at a time."""

    def __init__(self, space: Space, seed: int, points: Iterable[Point] = ()) -> None:
        self._space = space
        self._seed = seed
        self._taken = Taken(Coordinates(space))
        self._taken.add(points)
        self._has_repeated = False

    @staticmethod
    async def read(store: Store, key: int, space: Space, seed: int) -> HandedOut:
        """As the ledger has it."""
        texts = await store.read(results.handed_out, key)

        def collect() -> HandedOut:
            points = (tuple(map(float, json_text.parse(text))) for text in texts)
            return HandedOut(space, seed, points)

        # Beside the event loop: ten thousand points take their time.
        return await asyncio.to_thread(collect)

    def add(self, points: Iterable[Point]) -> None:
        self._taken.add(points)

    def is_new(self, point: Point) -> bool:
        return self._space.snap(point) not in self._taken.points

    def spread(self, number: int, others: Iterable[Point]) -> Point:
        """Point `number` of an even spread; where it was had, or is among the others, a new one.

        Where the space is used up, any.
        """
        draws = quasi_random(len(self._space.leaves), self._seed, number)
        even = self._space.place(draws)
        also = self._taken.snapped(others)
        if self.is_new(even) and self._space.snap(even) not in also:
            return even
        rng = np.random.default_rng([abs(self._seed), number, 5])
        point = self._taken.first_fresh((), also, rng)
        if not self.is_new(point) and not self._has_repeated:
            self._has_repeated = True
            log.warning("a sweep has handed out every setting that it can have: they repeat now")
        return point
