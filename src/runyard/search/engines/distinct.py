"""Avoids repeated points while the space has others; points are compared by their values.

The engines do this for the points that they know, the server for all that it has handed out.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator

import numpy as np

from runyard.search.engines.coordinates import Array, Coordinates
from runyard.search.space import Point

TRIES = 64
SMALL = 20_000  # in a space of so few points, all are tried before a point is repeated


class Taken:
    """The points that were tried or are pending."""

    def __init__(self, coordinates: Coordinates) -> None:
        self.coordinates = coordinates
        self.points: set[Point] = set()

    def add(self, points: Iterable[Point]) -> None:
        self.points |= self.snapped(points)

    def snapped(self, points: Iterable[Point]) -> set[Point]:
        """Points as their values. Also in an infinite space, because its corners can come again."""
        return {self.coordinates.space.snap(point) for point in points}

    def first_fresh(
        self, rows: Iterable[Array], also: set[Point], rng: np.random.Generator
    ) -> Point:
        """The first of the rows that is new, else a random one that is, else the first again."""
        first: Point | None = None
        for point in itertools.chain(
            map(self.coordinates.point, rows), self.random_points(rng), self.every_point(also)
        ):
            first = point if first is None else first
            if point not in self.points and point not in also:
                return point
        return first if first is not None else ()

    def random_points(self, rng: np.random.Generator) -> Iterator[Point]:
        for _ in range(TRIES):
            yield self.coordinates.space.snap(self.coordinates.space.draw(rng))

    def every_point(self, also: set[Point]) -> Iterator[Point]:
        if not self.coordinates.is_finite:
            return
        choices = [
            self.coordinates.choices(leaf).tolist() for leaf in range(self.coordinates.count)
        ]
        size = math.prod(len(choice) for choice in choices)
        if size > SMALL or len(self.points | also) >= size:
            return
        for point in itertools.product(*choices):
            yield self.coordinates.space.snap(tuple(point))
