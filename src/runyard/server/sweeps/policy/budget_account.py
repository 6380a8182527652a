"""Whether a sweep's budget has room for another trial. Pure; all amounts in the budget's unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runyard.search.budget import Budget, amount

# Sums of seconds are not exact.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Account:
    """What a sweep has used, and what it will have used when its open trials have ended."""

    budget: Budget
    used: float
    planned: float
    each: float | None
    """What a trial uses; None: none has ended, and none says how long it takes."""

    @property
    def is_used(self) -> bool:
        """Not even a trial that was interrupted goes on."""
        return self.used >= self.budget.hours - _ROUNDING

    def has_room(self, new: int = 0) -> bool:
        """For one more trial, after as many new ones as that: for all of it, as far as is known."""
        planned = self.planned + new * (self.each or 0.0)
        limit = self.budget.hours + _ROUNDING
        return planned < self.budget.hours - _ROUNDING and planned + (self.each or 0.0) <= limit

    @property
    def trials_left(self) -> int | None:
        """How many new ones there is room for; None: nobody knows."""
        if not self.each:
            return None
        return max(0, int((self.budget.hours + _ROUNDING - self.planned) / self.each))

    @property
    def words(self) -> str:
        """Why a sweep ended."""
        return f"its budget of {self.budget.words} is used: {amount(self.used)}"


@dataclass(frozen=True)
class OpenTrial:
    """One that has begun and not ended; seconds, of all its attempts."""

    seconds: float
    gpu_seconds: float
    left: float | None = None
    """What its program says; None: nothing."""
    share: float | None = None
    """GPUs that it has, or had before it was interrupted; None: it has just begun."""


def balance(
    budget: Budget,
    *,
    ended: int,
    ended_seconds: float,
    ended_gpu_seconds: float,
    other: float,
    open_trials: Sequence[OpenTrial],
) -> Account:
    """The account of a sweep.

    `ended` are the trials that ran to an end of their own, whose mean says what a new one takes;
    `other` is what failed and cancelled ones used, in seconds of the budget's unit.
    """
    each_seconds = ended_seconds / ended if ended else _expected(open_trials)
    used, to_come = ended_gpu_seconds if budget.counts_gpus else ended_seconds, 0.0
    shares = [trial.share for trial in open_trials if trial.share is not None]
    usual = 1.0
    if budget.counts_gpus and ended_seconds:
        usual = ended_gpu_seconds / ended_seconds
    elif budget.counts_gpus:
        usual = sum(shares) / len(shares) if shares else 0.0
    for trial in open_trials:
        rate = usual if trial.share is None or not budget.counts_gpus else trial.share
        used += trial.gpu_seconds if budget.counts_gpus else trial.seconds
        left = trial.left
        if left is None and each_seconds is not None:
            left = max(0.0, each_seconds - trial.seconds)
        to_come += rate * (left or 0.0)
    each = None
    if ended:
        each = (ended_gpu_seconds if budget.counts_gpus else ended_seconds) / ended
    elif each_seconds is not None:
        each = each_seconds * usual
    used += other
    return Account(
        budget, used / 3600, (used + to_come) / 3600, None if each is None else each / 3600
    )


def _expected(open_trials: Sequence[OpenTrial]) -> float | None:
    known = [trial.seconds + trial.left for trial in open_trials if trial.left is not None]
    return sum(known) / len(known) if known else None
