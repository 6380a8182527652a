"""Many runs as one curve: their mean, how far they lie apart, and how many there are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from runyard.server.history.columns import Numbers
from runyard.server.history.reading.curves import Curve


@dataclass(frozen=True)
class GroupCurve:
    """All have the same length. `deviation` is the standard deviation of the runs at that x."""

    count: int
    x: Numbers
    mean: Numbers
    low: Numbers
    high: Numbers
    deviation: Numbers
    runs: Numbers


def combine(curves: Iterable[Curve], points: int) -> GroupCurve | None:
    """The mean over all runs, at up to `points` places; None where no run has a value.

    A run counts where it has values, between its first and its last: between two of them it is
    taken to go straight. Spikes that no place hits are in `low` and `high` all the same.
    """
    usable = [one for one in map(_usable, curves) if one is not None]
    if not usable:
        return None
    grid = _grid([one[0] for one in usable], points)
    count = np.zeros(len(grid))
    mean = np.zeros(len(grid))
    squares = np.zeros(len(grid))
    low = np.full(len(grid), np.inf)
    high = np.full(len(grid), -np.inf)
    for x, last, lowest, highest in usable:
        value = np.interp(grid, x, last, left=np.nan, right=np.nan)
        there = np.isfinite(value)
        count += there
        away = np.where(there, value - mean, 0.0)
        mean += np.divide(away, count, out=np.zeros_like(mean), where=count > 0)
        squares += np.where(there, away * (value - mean), 0.0)
        low = np.fmin(low, np.fmin(value, _stretch(np.fmin, grid, x, lowest)))
        high = np.fmax(high, np.fmax(value, _stretch(np.fmax, grid, x, highest)))
    some = count > 0
    deviation = np.sqrt(
        np.divide(squares, count - 1, out=np.zeros_like(squares), where=count > 1).clip(min=0)
    )
    return GroupCurve(
        len(usable), *(column[some] for column in (grid, mean, low, high, deviation, count))
    )


def _usable(curve: Curve) -> tuple[Numbers, Numbers, Numbers, Numbers] | None:
    """Finite points in the order of x, each x once: the last of its values."""
    keep = np.isfinite(curve.x) & np.isfinite(curve.last)
    x = curve.x[keep]
    if not len(x):
        return None
    order = np.argsort(x, kind="stable")
    x = x[order]
    is_last = np.append(x[1:] != x[:-1], True)
    last, low, high = (column[keep][order] for column in (curve.last, curve.low, curve.high))
    firsts = np.flatnonzero(np.append(True, is_last[:-1]))
    return (
        x[is_last],
        last[is_last],
        np.fmin.reduceat(low, firsts),
        np.fmax.reduceat(high, firsts),
    )


def _grid(xs: list[Numbers], points: int) -> Numbers:
    """The places of all runs, thinned out evenly where there are too many."""
    every = np.unique(np.concatenate(xs))
    if len(every) <= points:
        return every
    return every[np.linspace(0, len(every) - 1, max(points, 2)).astype(np.int64)]


def _stretch(choose: np.ufunc, grid: Numbers, x: Numbers, values: Numbers) -> Numbers:
    """The smallest or largest value after the place before, up to each place; NaN without any."""
    ends = np.searchsorted(x, grid, side="right")
    firsts = np.concatenate([[0], ends[:-1]])
    found = np.full(len(grid), np.nan)
    filled = ends > firsts
    if filled.any():
        found[filled] = choose.reduceat(values[: ends[-1]], firsts[filled])
    return found
