"""One codec for every distribution: a coordinate to a value and back.

A coordinate is what a search engine sees of a parameter: a number in [0, 1] (the value's place in
its distribution), or the index of a category. Decoding uniform coordinates gives W&B's
distributions exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, Protocol

from runyard.search.laws import Law
from runyard.search.values import identity, known_keys, without_extra_keys

# Normal and log-normal are infinite at 0 and 1.
LEAST, MOST = 1e-9, 1 - 1e-9


def clamp(u: float) -> float:
    return min(MOST, max(LEAST, u)) if u == u else 0.5


class Distribution(Protocol):
    """The values that one searched parameter can have."""

    @property
    def categories(self) -> int:
        """How many categories; 0 for a number."""
        ...

    @property
    def levels(self) -> int | None:
        """How many distinct values, if that is finite and known."""
        ...

    def pick(self, u: float) -> float:
        """The coordinate that a uniform draw u stands for."""
        ...

    def decode(self, coordinate: float) -> Any: ...

    def encode(self, value: Any) -> float | None:
        """The coordinate of a value; None if the distribution cannot give it."""
        ...


@dataclass(frozen=True)
class Categorical:
    """A list of any values. A coordinate is an index among those with a probability."""

    values: tuple[Any, ...]
    probabilities: tuple[float, ...] | None = None

    @cached_property
    def options(self) -> tuple[Any, ...]:
        if self.probabilities is None:
            return self.values
        pairs = zip(self.values, self.probabilities, strict=True)
        return tuple(value for value, chance in pairs if chance > 0)

    @cached_property
    def _bounds(self) -> tuple[float, ...]:
        return tuple(accumulate(chance for chance in self.probabilities or () if chance > 0))

    @cached_property
    def _indices(self) -> dict[str, int]:
        # Backwards, so that for a repeated value the first index counts.
        return {identity(self.options[i]): i for i in reversed(range(len(self.options)))}

    @cached_property
    def _known_keys(self) -> frozenset[str] | None:
        return known_keys(self.options)

    @property
    def categories(self) -> int:
        return len(self.options)

    @property
    def levels(self) -> int:
        return len(self._indices)

    def pick(self, u: float) -> float:
        if self.probabilities is None:
            return float(_cell(u, len(self.options)))
        above = (i for i, bound in enumerate(self._bounds) if u < bound)
        return float(next(above, len(self.options) - 1))

    def decode(self, coordinate: float) -> Any:
        index = round(coordinate) if coordinate == coordinate else 0
        return self.options[min(len(self.options) - 1, max(0, index))]

    def encode(self, value: Any) -> float | None:
        index = self._indices.get(identity(without_extra_keys(value, self._known_keys)))
        return None if index is None else float(index)


@dataclass(frozen=True)
class IntUniform:
    low: int
    high: int
    categories = 0

    @property
    def levels(self) -> int:
        return self.high - self.low + 1

    def pick(self, u: float) -> float:
        return u

    def decode(self, coordinate: float) -> int:
        return self.low + _cell(coordinate, self.levels)

    def encode(self, value: Any) -> float | None:
        number = as_number(value)
        if number is None or number != int(number) or not self.low <= number <= self.high:
            return None
        return (int(number) - self.low + 0.5) / self.levels


@dataclass(frozen=True)
class Continuous:
    law: Law
    categories = 0
    levels = None

    def pick(self, u: float) -> float:
        return u

    def decode(self, coordinate: float) -> float:
        return self.law.quantile(clamp(coordinate))

    def encode(self, value: Any) -> float | None:
        number = as_number(value)
        if number is None or not _within(number, self.law.low, self.law.high):
            return None
        return clamp(self.law.cumulative(number))


@dataclass(frozen=True)
class Quantised:
    """A law rounded to multiples of q, which may lie outside its bounds. An integer q gives int."""

    law: Law
    q: float
    categories = 0

    @property
    def levels(self) -> int | None:
        if math.isinf(self.law.low) or math.isinf(self.law.high):
            return None
        return round(self.law.high / self.q) - round(self.law.low / self.q) + 1

    def pick(self, u: float) -> float:
        return u

    def decode(self, coordinate: float) -> float:
        return round(self.law.quantile(clamp(coordinate)) / self.q) * self.q

    def encode(self, value: Any) -> float | None:
        number = as_number(value)
        if number is None:
            return None
        multiple = round(number / self.q)
        if not math.isclose(multiple * self.q, number, rel_tol=1e-9, abs_tol=1e-9 * self.q):
            # Not a multiple of q, but a model can use it: the value of an earlier run.
            inside = _within(number, self.law.low, self.law.high)
            return clamp(self.law.cumulative(number)) if inside else None
        # The middle of the interval that is rounded to this multiple, so it decodes to itself.
        below = self.law.cumulative((multiple - 0.5) * self.q)
        above = self.law.cumulative((multiple + 0.5) * self.q)
        return clamp((clamp(below) + clamp(above)) / 2) if below < above else None


def as_number(value: Any) -> float | None:
    """A finite number, or None: booleans and text are not numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return value if math.isfinite(value) else None
    except OverflowError:
        return None


def _cell(u: float, count: int) -> int:
    """Which of `count` equal parts of [0, 1] u lies in; a border belongs to the part below it."""
    if u != u:
        return 0
    u = min(1.0, max(0.0, u))
    return min(count - 1, max(0, math.ceil(u * count) - 1))


def _within(number: float, low: float, high: float) -> bool:
    slack = 1e-9 * max(abs(low) if math.isfinite(low) else 0, abs(high) if high < math.inf else 0)
    return low - slack <= number <= high + slack
