"""When a sweep will be over, as far as it can be told."""

from __future__ import annotations


def eta_seconds(
    *, left: int | None, running_for: list[float], ended: int, busy_seconds: float
) -> float | None:
    """Seconds until the last trial ends, if those at work go on at the mean of those that ended.

    `left` are the trials that have not begun (None: without end); `running_for` how long each one
    at work has been so.
    """
    if left is None or not ended or not (left or running_for):
        return 0.0 if left == 0 and not running_for else None
    if not running_for:
        return None
    mean = busy_seconds / ended
    remaining = sum(max(mean - seconds, 0.0) for seconds in running_for) + left * mean
    return remaining / len(running_for)


def typical_seconds(ended: int, busy_seconds: float) -> float | None:
    """How long a trial of a sweep takes, all its attempts together; None before one finished."""
    return busy_seconds / ended if ended else None
