"""Points that follow from a number alone: of a grid, random, or spread evenly.

A grid is arithmetic: the settings of point n, and the n of some settings. Ten million points are a
product of a few small axes; no list is made. The order is that of W&B: the parameter that sorts
last varies fastest, and values come in the order of the file.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from runyard.search.axes import Axis, ListAxis
from runyard.search.space import MISSING, Space, look_up


def point_at(space: Space, index: int) -> dict[str, Any]:
    """The settings of one point of the grid; IndexError after its end."""
    axes = _axes(space)
    if not 0 <= index < (space.size or 0):
        raise IndexError(f"the grid has {space.size} points, and no point {index}")
    values = []
    for axis in reversed(axes):
        index, place = divmod(index, len(axis))
        values.append(axis.value(place))
    return space.settings(values[::-1])


def index_of(space: Space, settings: Mapping[str, Any]) -> int | None:
    """The number of the point with these settings; None if the grid does not have it.

    Compared as in W&B: 64.0 is 64. Keys that a program added to a mapping are ignored, and so are
    constants, but not lists with one value.
    """
    index = 0
    for leaf, axis in zip(space.leaves, _axes(space), strict=True):
        value = look_up(settings, leaf.path)
        place = None if value is MISSING else axis.index(value)
        if place is None:
            return None
        index = index * len(axis) + place
    for constant in space.constants:
        if constant.listed:
            value = look_up(settings, constant.path)
            if value is MISSING or ListAxis((constant.value,)).index(value) is None:
                return None
    return index


def _axes(space: Space) -> tuple[Axis, ...]:
    if space.axes is None:
        raise ValueError("a grid needs parameters with a list of values")
    return space.axes


def draws(seed: int, number: int, count: int) -> list[float]:
    """Draws from [0, 1) for a number; always the same, on every machine."""
    numbers: list[float] = []
    while len(numbers) < count:
        text = f"{seed} {number} {len(numbers)}".encode()
        words = struct.unpack("<8Q", hashlib.blake2b(text).digest())
        numbers += [(word >> 11) * 2.0**-53 for word in words]
    return numbers[:count]


def quasi_random(dimensions: int, seed: int, number: int) -> list[float]:
    """Point `number` of an additive recurrence: spread evenly from the first one on.

    Each coordinate advances by a power of the root of x^(d+1) = x + 1; the seed gives the start.
    """
    starts = draws(seed, -1, dimensions)
    steps = _steps(dimensions)
    return [(start + (number + 1) * step) % 1.0 for start, step in zip(starts, steps, strict=True)]


@lru_cache(64)
def _steps(dimensions: int) -> list[float]:
    root = 2.0
    for _ in range(40):
        root = (1.0 + root) ** (1.0 / (dimensions + 1))
    return [root**-power for power in range(1, dimensions + 1)]
