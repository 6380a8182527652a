"""Axes: where a value stands, and which values are written beside them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from runyard.reading.units import number

# From this ratio on, equal steps would put all but a few values into one corner.
_DECADES = 100.0
_OUTLIERS = 4.0


@dataclass(frozen=True)
class Scale:
    """Values from `low` to `high` onto pixels; what lies beyond stands at the edge."""

    low: float
    high: float
    begin: float
    end: float
    is_log: bool = False

    def __call__(self, value: float) -> float:
        low, high, value = (self._bent(number) for number in (self.low, self.high, value))
        share = 0.5 if high == low else min(1.0, max(0.0, (value - low) / (high - low)))
        return self.begin + share * (self.end - self.begin)

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high

    def _bent(self, value: float) -> float:
        return math.log(max(value, 1e-300)) if self.is_log else value

    def ticks(self, about: int = 5) -> list[tuple[float, str]]:
        """Values to be written, each with its words."""
        values = self._decades(about) if self.is_log else _steps(self.low, self.high, about)
        return [(value, number(float(f"{value:.6g}"))) for value in values]

    def _decades(self, about: int) -> list[float]:
        first, last = (
            math.ceil(math.log10(self.low) - 1e-9),
            math.floor(math.log10(self.high) + 1e-9),
        )
        if last - first < 1:
            return _steps(self.low, self.high, about)
        every = max(1, math.ceil((last - first + 1) / about))
        return [10.0**power for power in range(first, last + 1, every)]


def scale_of(values: Sequence[float], begin: float, end: float) -> Scale:
    """An axis for these, with a little room; by decades where they spread that far.

    A few that lie far out do not press all others together: they are left beyond the edge.
    """
    ordered = sorted(values)
    low, high = ordered[0], ordered[-1]
    if low > 0 and high / low >= _DECADES:
        return Scale(low / 1.15, high * 1.15, begin, end, is_log=True)
    quarter, half, most = (ordered[int(share * (len(ordered) - 1))] for share in (0.25, 0.5, 0.75))
    reach = _OUTLIERS * max(most - quarter, 1e-12 * max(1.0, abs(half)))
    if len(ordered) >= 8 and most > quarter:
        low, high = max(low, quarter - reach), min(high, most + reach)
    room = 0.06 * (high - low) or abs(high) * 0.1 or 1.0
    return Scale(low - room, high + room, begin, end)


def _steps(low: float, high: float, about: int) -> list[float]:
    width = high - low
    if width <= 0 or not math.isfinite(width):
        return [low]
    rough = width / max(1, about)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(
        (factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough), 10 * power
    )
    first = math.ceil(low / step - 1e-9)
    ticks: list[float] = []
    while first * step <= high + step * 1e-9 and len(ticks) < 50:
        ticks.append(first * step)
        first += 1
    return ticks
