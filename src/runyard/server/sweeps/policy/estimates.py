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
    known = [one.seconds + one.left for one in at_work if one.left is not None]
    return sum(known) / len(known) if known else None


def seconds_left(one: AtWork, each: float | None) -> float | None:
    """Of a trial at work: what its program says, or else what is left of the usual time."""
    if one.left is not None:
        return one.left
    return None if each is None else max(each - one.seconds, 0.0)


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
    known = [seconds_left(one, each) for one in at_work]
    remaining = [one for one in known if one is not None]
    if len(remaining) < len(known) or (left and each is None):
        return None
    if not left:
        return max(remaining)
    return (sum(remaining) + left * (each or 0.0)) / len(remaining)
