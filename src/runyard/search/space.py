"""What a sweep searches: its parameters as one flat list of coordinates."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from runyard.search.axes import Axis, axis_of
from runyard.search.distributions import Distribution
from runyard.search.values import SEPARATOR

# One coordinate per leaf: in [0, 1] for a number, the index for a category.
Point: TypeAlias = tuple[float, ...]


@dataclass(frozen=True)
class Leaf:
    """One searched parameter, with its groups."""

    path: tuple[str, ...]
    distribution: Distribution
    position: int = 0  # among all leaves, as the file has them

    @property
    def name(self) -> str:
        return SEPARATOR.join(self.path)

    @property
    def is_categorical(self) -> bool:
        return self.distribution.categories > 0

    @property
    def categories(self) -> int:
        return self.distribution.categories

    @property
    def levels(self) -> int | None:
        return self.distribution.levels


@dataclass(frozen=True)
class Constant:
    """A parameter with one value. `listed`: the file has it as a list of one value; W&B's grid
    compares such values when it matches a run with its points."""

    path: tuple[str, ...]
    value: Any
    listed: bool = False


@dataclass(frozen=True)
class Space:
    """The leaves that are searched, in sorted order, and the constants beside them."""

    leaves: tuple[Leaf, ...]
    constants: tuple[Constant, ...] = ()

    @cached_property
    def axes(self) -> tuple[Axis, ...] | None:
        """The grid's axes, in the order of the leaves; None if a leaf has no axis."""
        axes = [axis_of(leaf.distribution) for leaf in self.leaves]
        return tuple(axis for axis in axes if axis is not None) if None not in axes else None

    @cached_property
    def size(self) -> int | None:
        """The number of points of the grid; None if it is infinite."""
        return None if self.axes is None else math.prod(len(axis) for axis in self.axes)

    @cached_property
    def top_names(self) -> frozenset[str]:
        """The parameters of a command line: a group is one parameter."""
        leaves = {leaf.path[0] for leaf in self.leaves}
        return frozenset(leaves | {constant.path[0] for constant in self.constants})

    @cached_property
    def _in_file_order(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        leaves = sorted(self.leaves, key=lambda leaf: leaf.position)
        return tuple((leaf.name, leaf.path) for leaf in leaves)

    def decode(self, point: Sequence[float]) -> dict[str, Any]:
        """The settings at a point, nested as the run's config holds them, with the constants."""
        pairs = zip(self.leaves, point, strict=True)
        return self.settings([leaf.distribution.decode(place) for leaf, place in pairs])

    def encode(self, settings: Mapping[str, Any]) -> Point | None:
        """The point of some settings; None if a value is missing or outside of the space."""
        point = []
        for leaf in self.leaves:
            value = look_up(settings, leaf.path)
            place = None if value is MISSING else leaf.distribution.encode(value)
            if place is None:
                return None
            point.append(place)
        return tuple(point)

    def snap(self, point: Sequence[float]) -> Point:
        """The point of the rounded values: whole numbers and multiples of q."""
        pairs = list(zip(self.leaves, point, strict=True))
        back = [leaf.distribution.encode(leaf.distribution.decode(place)) for leaf, place in pairs]
        return tuple(
            place if snapped is None else snapped
            for (_, place), snapped in zip(pairs, back, strict=True)
        )

    def draw(self, rng: np.random.Generator) -> Point:
        """A random point, by each parameter's own distribution."""
        return self.place([float(u) for u in rng.random(len(self.leaves))])

    def place(self, draws: Sequence[float]) -> Point:
        """The point of draws from [0, 1]: what turns quasi-random numbers into a point."""
        pairs = zip(self.leaves, draws, strict=True)
        return tuple(leaf.distribution.pick(u) for leaf, u in pairs)

    def settings(self, values: Sequence[Any]) -> dict[str, Any]:
        """Values in the order of the leaves, and the constants, as one nested mapping."""
        settings: dict[str, Any] = {}
        for constant in self.constants:
            _put(settings, constant.path, constant.value)
        for leaf, value in zip(self.leaves, values, strict=True):
            _put(settings, leaf.path, value)
        return settings

    def swept(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The searched values among some settings, by flat name, in the order of the file: what a
        trial is named after."""
        values = {name: look_up(settings, path) for name, path in self._in_file_order}
        return {name: value for name, value in values.items() if value is not MISSING}


MISSING: Any = object()


def look_up(settings: Any, path: Sequence[str]) -> Any:
    """The value at a path of nested mappings, or MISSING."""
    for step in path:
        # Nearly always a plain dictionary; this check is faster than that for any mapping.
        is_group = type(settings) is dict or isinstance(settings, Mapping)
        if not is_group or step not in settings:
            return MISSING
        settings = settings[step]
    return settings


def _put(settings: dict[str, Any], path: Sequence[str], value: Any) -> None:
    for step in path[:-1]:
        settings = settings.setdefault(step, {})
    # A copy, so that changes of a run's settings do not change the sweep.
    is_plain = value is None or isinstance(value, str | int | float)
    settings[path[-1]] = value if is_plain else copy.deepcopy(value)
