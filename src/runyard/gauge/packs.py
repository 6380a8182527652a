"""How many programs pay on one GPU: k = 1, 2, 4 and so on, to where more stops paying. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from runyard.node.devices.packing import NEEDED_GAIN


@dataclass(frozen=True)
class Level:
    """So many at a time: steps a second of all together; None: they failed, and why."""

    count: int
    rate: float | None
    why: str = ""

    def gain_over(self, alone: Level) -> float | None:
        """What they get done together; one alone is 1."""
        return self.rate / alone.rate if self.rate and alone.rate else None


@dataclass(frozen=True)
class Climb:
    levels: tuple[Level, ...]
    best: Level
    why: str
    """Why it ended there."""


def climb(measure: Callable[[int], Level], most: int, why_most: str, *, limit: int) -> Climb:
    """Double as long as it pays. `most` is what there is room for, `limit` what was allowed."""
    levels = [measure(1)]
    best = levels[0]
    allowed = max(1, min(most, limit))
    if best.rate is None:
        return Climb(tuple(levels), best, best.why)
    while best.count < allowed:
        count = min(2 * best.count, allowed)
        level = measure(count)
        levels.append(level)
        if level.rate is None:
            return Climb(tuple(levels), best, f"{count} did not work: {level.why}")
        assert best.rate is not None
        if level.rate < best.rate * (1 + NEEDED_GAIN):
            return Climb(tuple(levels), best, f"{count} did not get more done")
        best = level
    return Climb(tuple(levels), best, "no more are allowed" if limit <= most else why_most)
