"""What an engine hears of a trial, and what it must be able to do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from runyard.search.space import Point

LARGEST = 1e100  # beyond it values are all the same to an engine: squares of them stay finite


@dataclass(frozen=True)
class Result:
    number: int
    point: Point
    values: tuple[float, ...]  # to be minimised; () for a trial that failed or has no value
    constraints: tuple[float, ...] = ()  # each at most 0 where it is kept

    @property
    def is_usable(self) -> bool:
        return bool(self.values) and all(math.isfinite(value) for value in self.values)


class Engine(Protocol):
    """A method of search.

    `suggest` is a function of the seed, of what was added (in its order), of the pending points and
    of the number: an engine made anew and told the same says the same. No value makes it raise.
    """

    def add(self, results: Sequence[Result]) -> None: ...

    def suggest(self, pending: Sequence[Point], count: int, number: int) -> list[Point]: ...
