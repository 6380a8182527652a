"""Between which times a run will end, from the pace of what is done. Pure.

Steps that get slower are seen as a trend of the windows of the time so far. What comes later and
was not seen yet (another phase, a buffer that begins to fill) is a margin, which the simulated
programs of `benchmarks/estimate_ranges.py` have set: nine ends of ten are inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

Interval = tuple[float, float, float]
"""Seconds, steps (or work), and the second at its end."""

_WINDOWS = 6
_FEWEST_INTERVALS, _FEWEST_WINDOWS = 12, 4
# Of the time left: where the first run of a program may be off though nothing was seen of it, and
# where one that follows an earlier run may.
_FIRST = (0.16, 0.62)
_AGAIN = (0.08, 0.10)
# A trend counts where it is more than so many times what windows differ by chance.
_CLEAR = 2.5
_CHANCE = 2.5


@dataclass(frozen=True)
class Trend:
    """`growth`: of a step's time, for each step; `chance`: by how much windows differ anyway."""

    pace: float
    growth: float
    chance: float
    is_clear: bool


def trend_of(intervals: Sequence[Interval]) -> Trend | None:
    """Of regular steps; None while too little was seen."""
    if len(intervals) < _FEWEST_INTERVALS:
        return None
    windows = _split(intervals)
    if len(windows) < _FEWEST_WINDOWS:
        return None
    places = [place for place, _ in windows]
    paces = [pace for _, pace in windows]
    slopes = [
        (paces[later] - paces[early]) / (places[later] - places[early])
        for early in range(len(windows))
        for later in range(early + 1, len(windows))
    ]
    growth = median(slopes)
    level = median(pace - growth * place for place, pace in windows)
    off = [abs(pace - level - growth * place) for place, pace in windows]
    usual = median(paces)
    if usual <= 0:
        return None
    chance = 1.4826 * median(off) / usual
    end = places[-1] + (places[-1] - places[-2]) / 2
    rises = abs(growth) * (places[-1] - places[0]) / usual
    # A step of a schedule is over when it has happened: a trend still goes on.
    goes_on = (paces[-1] - paces[-3]) * growth > 0.5 * growth * growth * (places[-1] - places[-3])
    is_clear = goes_on and rises > max(0.02, _CLEAR * chance)
    return Trend(max(level + growth * end, 0.1 * usual), growth, chance, is_clear)


def _split(intervals: Sequence[Interval]) -> list[tuple[float, float]]:
    """(the middle, seconds a step) of windows of about as many steps each."""
    whole = sum(steps for _, steps, _ in intervals)
    windows: list[tuple[float, float]] = []
    done = began = seconds = 0.0
    for taken, steps, _ in intervals:
        done += steps
        seconds += taken
        if done >= whole * (len(windows) + 1) / _WINDOWS - 1e-9 and done > began:
            windows.append(((began + done) / 2, seconds / (done - began)))
            began, seconds = done, 0.0
    return windows


def range_of(
    intervals: Sequence[Interval], left: float, rest: float, *, seen: float, again: bool
) -> tuple[float, float, float]:
    """Seconds left as they are expected, at least and at most.

    `left`: by the pace of late; `rest`: the work that is left; `seen`: the part of the work that is
    done; `again`: it follows the course of an earlier run, or phases that the program names.
    """
    trend = trend_of(intervals)
    below, above = _AGAIN if again else _FIRST
    # What has held for most of a run changes less in what is left of it.
    unseen = max(0.25, 1.0 - seen)
    chance = 0.1 if trend is None else _CHANCE * trend.chance / max(1.0, len(intervals) / 40) ** 0.5
    expected, low, high = left, left, left
    if trend is not None and trend.is_clear and not again:
        flat = trend.pace * rest
        on = max(0.3 * flat, flat + trend.growth * rest * rest / 2)
        expected = (flat + on) / 2
        low, high = min(flat, on, expected), max(flat, on, expected)
        # It was seen: less is left to be surprised by.
        above /= 2
    return (
        expected,
        low * max(0.1, 1 - below * unseen - chance),
        high * (1 + above * unseen + chance),
    )
