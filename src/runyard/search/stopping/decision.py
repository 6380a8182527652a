"""What a rule can say to a trial, and what it must be able to do."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Protocol


class Decision(enum.Enum):
    GO_ON = "go on"
    STOP = "stop"
    PAUSE = "pause"


class Stopper(Protocol):
    """A rule with its memory of a sweep. Values are as they were logged; the goal is the rule's.

    Told of the same reports in the same order it says the same. A report takes the logarithm of the
    number of trials, so every report can be judged.
    """

    def report(self, trial: int, index: float, value: float) -> Decision:
        """Of the trial's `index`-th value. Indexes grow; one that comes again changes nothing."""
        ...

    def restore(self, trial: int, curve: Sequence[tuple[float, float]], is_paused: bool) -> None:
        """All (index, value) of a trial, as after a restart; if it ended, `ended` is said after."""
        ...

    def ended(self, trial: int) -> None:
        """It will not report again; its values stay what others are compared with."""
        ...

    def promotable(self) -> int | None:
        """The paused trial that should go on now, if any; it stays paused until `resumed`."""
        ...

    def resumed(self, trial: int) -> None: ...
