"""When a sweep will be over, as far as it can be told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class AtWork:
    """A trial that runs: for how long, and how long it says that it still takes."""

    seconds: float
    left: float | None = None


def trial_seconds(at_work: Sequence[AtWork], ended: int, busy_seconds: float) -> float | None:
    """How long a trial takes: as those that finished did, or as those at work expect."""
    if ended:
        return busy_seconds / ended
    known = [trial.seconds + trial.left for trial in at_work if trial.left is not None]
    return sum(known) / len(known) if known else None


def seconds_left(trial: AtWork, each: float | None) -> float | None:
    """Of a trial at work: what its program says, or else what is left of the usual time."""
    if trial.left is not None:
        return trial.left
    return None if each is None else max(each - trial.seconds, 0.0)


def eta_seconds(
    *, left: int | None, at_work: Sequence[AtWork], ended: int, busy_seconds: float
) -> float | None:
    """Seconds until the last trial ends.

    `left` are the trials that have not begun (None: without end). They take turns on the places of
    those that run now.
    """
    if left is None or not at_work:
        return 0.0 if left == 0 else None
    each = trial_seconds(at_work, ended, busy_seconds)
    known = [seconds_left(trial, each) for trial in at_work]
    remaining = [trial for trial in known if trial is not None]
    if len(remaining) < len(known) or (left and each is None):
        return None
    if not left:
        return max(remaining)
    return (sum(remaining) + left * (each or 0.0)) / len(remaining)
