"""The values of a grid: one axis per parameter, computed only on demand."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from runyard.search.distributions import (
    Categorical,
    Distribution,
    IntUniform,
    Quantised,
    as_number,
)
from runyard.search.laws import Uniform
from runyard.search.values import identity, known_keys, without_extra_keys


class Axis(Protocol):
    def __len__(self) -> int: ...

    def value(self, index: int) -> Any: ...

    def index(self, value: Any) -> int | None:
        """The index of a run's value; None if the axis does not have it."""
        ...


@dataclass(frozen=True)
class ListAxis:
    """Values in the order of the file, each once."""

    values: tuple[Any, ...]

    @cached_property
    def _distinct(self) -> tuple[Any, ...]:
        first: dict[str, Any] = {}
        for value in self.values:
            first.setdefault(identity(value), value)
        return tuple(first.values())

    @cached_property
    def _indices(self) -> dict[str, int]:
        return {identity(value): index for index, value in enumerate(self._distinct)}

    @cached_property
    def _known_keys(self) -> frozenset[str] | None:
        return known_keys(self.values)

    def __len__(self) -> int:
        return len(self._distinct)

    def value(self, index: int) -> Any:
        return self._distinct[index]

    def index(self, value: Any) -> int | None:
        return self._indices.get(identity(without_extra_keys(value, self._known_keys)))


@dataclass(frozen=True)
class StepAxis:
    """start, start + step, ... The step is that of numpy's arange, which W&B uses."""

    start: float
    count: int
    step: float

    def __len__(self) -> int:
        return self.count

    def value(self, index: int) -> float:
        return self.start + index * self.step

    def index(self, value: Any) -> int | None:
        number = as_number(value)
        if number is None:
            return None
        index = round((number - self.start) / self.step)
        near = math.isclose(self.value(index), number, rel_tol=1e-9, abs_tol=1e-9 * self.step)
        return index if near and 0 <= index < self.count else None


def axis_of(distribution: Distribution) -> Axis | None:
    """The axis of a distribution; None if it has none: a continuous range, or values with
    probabilities."""
    if isinstance(distribution, Categorical) and distribution.probabilities is None:
        return ListAxis(distribution.values)
    if isinstance(distribution, IntUniform):
        return StepAxis(distribution.low, distribution.levels, 1)
    if isinstance(distribution, Quantised) and isinstance(distribution.law, Uniform):
        low, high, q = distribution.law.low, distribution.law.high, distribution.q
        integers = all(isinstance(number, int) for number in (low, high, q))
        start, step = (low, q) if integers else (float(low), (low + q) - low)
        # Without max, as in W&B: 0 to 1 by 0.5 is 0 and 0.5.
        count = -(-(high - low) // q) if integers else math.ceil((high - low) / q)
        return StepAxis(start, int(count), step)
    return None
