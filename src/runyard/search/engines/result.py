"""The result of a trial for an engine, and the protocol of engines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from runyard.search.space import Point

LARGEST = 1e100  # larger values are cut to this, so that their squares stay finite


@dataclass(frozen=True)
class Result:
    number: int
    point: Point
    values: tuple[float, ...]  # to be minimised; () for a trial that failed or has no value
    constraints: tuple[float, ...] = ()  # each is at most 0 if it holds

    @property
    def is_usable(self) -> bool:
        return bool(self.values) and all(math.isfinite(value) for value in self.values)


class Engine(Protocol):
    """A method of search.

    `suggest` is a function of the seed, the added results in their order, the pending points and
    the number: a new engine with the same input gives the same points. No value makes it raise.
    """

    def add(self, results: Sequence[Result]) -> None: ...

    def suggest(self, pending: Sequence[Point], count: int, number: int) -> list[Point]: ...
