"""How many programs pay off on one GPU: k = 1, 2, 4 and so on, until more do not. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from runyard.node.devices.packing import choose
from runyard.node.devices.throughput import Level as Measured


@dataclass(frozen=True)
class Level:
    """`count` programs at a time: steps per second of all together. None: they failed (`why`)."""

    count: int
    rate: float | None
    why: str = ""
    has_mps: bool = False

    def gain_over(self, alone: Level) -> float | None:
        """Their throughput relative to one program alone."""
        return self.rate / alone.rate if self.rate and alone.rate else None


@dataclass(frozen=True)
class Climb:
    levels: tuple[Level, ...]
    best: Level
    why: str
    """Why it stopped there."""

    def learnt(self, peak: int, total: int) -> dict[str, Any]:
        """For the sweeps with `--per-gpu auto` that follow: they begin there."""
        alone, known = self.levels[0], [level for level in self.levels if level.rate]
        work = {str(level.count): level.gain_over(alone) for level in known}
        return {
            "work": work, "by": "steps", "aim": self.best.count, "starts": [], "works": [],
            "peaks": [peak], "total": total,
        }  # fmt: skip


def climb(measure: Callable[[int], Level], most: int, why_most: str, *, limit: int) -> Climb:
    """Double as long as it pays off. `most` is how many fit, `limit` how many are allowed."""
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
        if _best(levels) != count:
            return Climb(tuple(levels), best, f"{count} did not get more done")
        best = level
    return Climb(tuple(levels), best, "no more are allowed" if limit <= most else why_most)


def _best(levels: Sequence[Level]) -> float:
    """By the rule that agents have."""
    known = [Measured(level.count, level.rate, 0.0, 1) for level in levels if level.rate]
    return choose(known).count
