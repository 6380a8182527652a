"""A search space for drawing: each parameter as an axis from 0 to 1, with labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runyard.search.distributions import Categorical, Continuous, IntUniform, Quantised
from runyard.search.laws import LogUniform, Uniform
from runyard.search.space import MISSING, Leaf, Space, look_up

_TICKS = 5
_MOST_OPTIONS = 100


@dataclass(frozen=True)
class AxisTick:
    place: float
    value: Any


@dataclass(frozen=True)
class Drawn:
    """One parameter. `categories` is 0 for a number; `said` is its distribution in words."""

    name: str
    categories: int
    said: str
    ticks: tuple[AxisTick, ...]
    is_searched: bool = True


def draw_leaf(leaf: Leaf) -> Drawn:
    distribution = leaf.distribution
    if isinstance(distribution, Categorical):
        return _of_options(leaf.name, distribution.options, searched=True)
    places = [index / (_TICKS - 1) for index in range(_TICKS)]
    if isinstance(distribution, IntUniform) and distribution.levels <= 10:
        places = [(index + 0.5) / distribution.levels for index in range(distribution.levels)]
    ticks = tuple(AxisTick(place, _value_at(distribution, place)) for place in places)
    return Drawn(leaf.name, 0, _in_words(distribution), ticks)


def draw_values(name: str, values: Sequence[Any]) -> Drawn:
    """An axis for a parameter that is in no space, from the values of trials."""
    known = [value for value in values if value is not None and value is not MISSING]
    if known and all(_is_number(value) for value in known):
        low, high = float(min(known)), float(max(known))
        places = [index / (_TICKS - 1) for index in range(_TICKS)]
        ticks = tuple(AxisTick(place, low + place * (high - low)) for place in places)
        return Drawn(name, 0, f"values from {low:g} to {high:g}", ticks, is_searched=False)
    options = tuple({str(value): value for value in known}.values())
    return _of_options(name, options, searched=False)


def place_in(leaf: Leaf, settings: Mapping[str, Any]) -> float | None:
    """The place of a trial on a leaf's axis, from 0 to 1; None if it has none."""
    value = look_up(settings, leaf.path)
    place = None if value is MISSING else leaf.distribution.encode(value)
    if place is None:
        return None
    return _spread(place, leaf.categories) if leaf.categories else place


def place_among(drawn: Drawn, value: Any) -> float | None:
    """The same for a parameter that `draw_values` made."""
    if value is None or value is MISSING:
        return None
    if drawn.categories:
        places = [tick.place for tick in drawn.ticks if str(tick.value) == str(value)]
        return places[0] if places else None
    low, high = drawn.ticks[0].value, drawn.ticks[-1].value
    return 0.5 if high == low else (float(value) - low) / (high - low)


def leaves_of(space: Space) -> list[Leaf]:
    """In the order of the file."""
    return sorted(space.leaves, key=lambda leaf: leaf.position)


def _of_options(name: str, options: Sequence[Any], *, searched: bool) -> Drawn:
    count = len(options)
    ticks = tuple(
        AxisTick(_spread(index, count), value)
        for index, value in enumerate(options[:_MOST_OPTIONS])
    )
    return Drawn(name, max(count, 1), f"one of {count}", ticks, is_searched=searched)


def _spread(index: float, count: int) -> float:
    return 0.5 if count < 2 else index / (count - 1)


def _in_words(distribution: Any) -> str:
    if isinstance(distribution, IntUniform):
        return f"whole numbers from {distribution.low} to {distribution.high}"
    if not isinstance(distribution, Continuous | Quantised):
        return "numbers"
    law = distribution.law
    steps = f", in steps of {distribution.q:g}" if isinstance(distribution, Quantised) else ""
    if math.isinf(law.low) or math.isinf(law.high):
        middle = law.quantile(0.5)
        return f"numbers around {middle:g}{steps}"
    words = {Uniform: "numbers", LogUniform: "numbers on a log scale"}
    return f"{words.get(type(law), 'numbers')} from {law.low:g} to {law.high:g}{steps}"


def _value_at(distribution: Any, place: float) -> Any:
    """Exact labels at the ends, where the codec would give 5e-10 instead of 0."""
    if isinstance(distribution, Continuous) and place in (0.0, 1.0):
        end = distribution.law.high if place else distribution.law.low
        if math.isfinite(end):
            return end
    return distribution.decode(place)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
