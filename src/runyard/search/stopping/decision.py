"""The decisions of a rule about a trial, and the protocol of rules."""

from __future__ import annotations

import bisect
import enum
from collections.abc import Sequence
from typing import Protocol

LONGEST = 10**15  # no run logs more often


class Decision(enum.Enum):
    GO_ON = "go on"
    STOP = "stop"
    PAUSE = "pause"


class Stopper(Protocol):
    """A rule with its state for one sweep. Values are as logged; the rule knows the goal.

    The same reports in the same order give the same decisions. The time for a report grows with the
    logarithm of the number of trials, so every report can be judged.
    """

    def report(self, trial: int, index: float, value: float) -> Decision:
        """The decision for the trial's `index`-th value. A repeated index changes nothing."""
        ...

    def restore(self, trial: int, curve: Sequence[tuple[float, float]], is_paused: bool) -> None:
        """All (index, value) of a trial, after a restart; `ended` follows if it has ended."""
        ...

    def ended(self, trial: int) -> None:
        """The trial will not report again; others are still compared with its values."""
        ...

    def promotable(self) -> int | None:
        """The paused trial that should continue now, if any; it stays paused until `resumed`."""
        ...

    def resumed(self, trial: int) -> None: ...


class Ranks:
    """Values of many trials at one point of their curves, in order: smaller is better. A trial
    stands here once."""

    def __init__(self) -> None:
        self.sorted: list[tuple[float, int]] = []
        self.values: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self.sorted)

    def add(self, trial: int, value: float) -> None:
        if trial not in self.values:
            self.values[trial] = value
            bisect.insort(self.sorted, (value, trial))

    def value_at(self, place: int) -> float:
        return self.sorted[place][0]
