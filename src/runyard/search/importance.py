"""How much each parameter matters: its share of the differences between trials.

The trials are ranked by their metric, so a trial that diverged counts as the worst and not as a
million times worse. A sum of one curve per parameter is fitted to the ranks (piecewise linear for
numbers, a level for each category), shrunk towards zero by the amount that predicts best. The share
of a parameter is the part of the differences that its curve explains; shares add up to what all of
them explain. What the same fit finds in shuffled ranks is chance, and is subtracted. The rest is
interaction between parameters, or noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FEWEST_TRIALS = 10
_KNOTS = 6
_SHUFFLES = 100
_PENALTIES = tuple(10.0 ** (power / 2) for power in range(-6, 8))


@dataclass(frozen=True)
class Importance:
    """`share`: from 0 to 1. `is_sure`: shuffled ranks reach it less than one time in twenty.

    `best`: where on its axis the best trials are; None for categories and where too few tell.
    """

    share: float
    is_sure: bool
    best: Literal["lowest", "between", "highest"] | None


def importances(
    places: Array,
    categories: Sequence[int],
    values: Array,
    *,
    maximize: bool = False,
    seed: int = 0,
) -> list[Importance] | None:
    """One for each column of `places` (one row per trial, NaN if it has no value).

    `categories` is the number of categories of each column, 0 for numbers. None: too few trials.
    """
    usable = np.isfinite(values) | np.isinf(values)
    places, values = places[usable], values[usable]
    if len(values) < FEWEST_TRIALS or np.ptp(_ranks(values)) == 0:
        return None
    blocks = [
        _levels(column, count) if count else _curve(column)
        for column, count in zip(places.T, categories, strict=True)
    ]
    ends = np.cumsum([block.shape[1] for block in blocks]) if blocks else np.array([], dtype=int)
    scores = _normal_scores(values)
    rng = np.random.default_rng(seed)
    shuffled = np.stack([rng.permutation(scores) for _ in range(_SHUFFLES)], axis=1)
    shares = _shares(blocks, ends, np.column_stack([scores, shuffled]))
    chance = shares[:, 1:]
    result = []
    for index, count in enumerate(categories):
        share = float(shares[index, 0])
        result.append(
            Importance(
                share=max(0.0, share - float(chance[index].mean())),
                is_sure=share > float(np.quantile(chance[index], 0.95)) and share > 0,
                best=None if count else _best(places[:, index], -values if maximize else values),
            )
        )
    return result


def _shares(blocks: Sequence[Array], ends: NDArray[np.int64], targets: Array) -> Array:
    """For each block and target, the share of the target's variance that the block explains."""
    if not blocks or not ends[-1]:
        return np.zeros((len(blocks), targets.shape[1]))
    whole = np.column_stack(list(blocks))
    whole = whole - whole.mean(axis=0)
    targets = targets - targets.mean(axis=0)
    left, sizes, right = np.linalg.svd(whole, full_matrices=False)
    keep = sizes > 1e-9 * max(float(sizes[0]), 1e-300)
    left, sizes, right = left[:, keep], sizes[keep], right[keep]
    seen = left.T @ targets
    penalty = _best_penalty(sizes, seen[:, 0], targets[:, 0])
    weights = right.T @ ((sizes / (sizes**2 + penalty))[:, None] * seen)
    variance = (targets**2).sum(axis=0)
    begins = [0, *ends[:-1].tolist()]
    return np.array(
        [
            ((whole[:, begin:end] @ weights[begin:end]) * targets).sum(axis=0) / variance
            for begin, end in zip(begins, ends.tolist(), strict=True)
        ]
    )


def _best_penalty(sizes: Array, seen: Array, target: Array) -> float:
    """Generalised cross-validation: how well the other trials predict each trial."""
    outside = float((target**2).sum() - (seen**2).sum())
    count = len(target)
    best: float = _PENALTIES[-1]
    least = np.inf
    for penalty in _PENALTIES:
        shrunk = sizes**2 / (sizes**2 + penalty)
        error = outside + float((((1 - shrunk) * seen) ** 2).sum())
        freedom = count - 1 - float(shrunk.sum())
        if freedom > 1 and error / freedom**2 < least:
            best, least = penalty, error / freedom**2
    return best


def _curve(column: Array) -> Array:
    """Piecewise linear, with about as many trials between all knots; NaN counts nowhere."""
    there = np.isfinite(column)
    known = column[there]
    distinct = np.unique(known)
    if len(distinct) < 2:
        return np.zeros((len(column), 0))
    knots = np.unique(np.quantile(known, np.linspace(0, 1, min(_KNOTS, len(distinct)))))
    basis = np.zeros((len(column), len(knots)))
    for index in range(len(knots)):
        peak = np.zeros(len(knots))
        peak[index] = 1.0
        basis[there, index] = np.interp(known, knots, peak)
    return basis


def _levels(column: Array, count: int) -> Array:
    """One column for each category that was tried."""
    tried = [index for index in range(count) if (column == index).any()]
    if len(tried) < 2:
        return np.zeros((len(column), 0))
    return np.stack([(column == index).astype(np.float64) for index in tried], axis=1)


def _ranks(values: Array) -> Array:
    """Ranks from 0 on; equal values share their mean rank."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    firsts = np.searchsorted(ordered, values, side="left")
    lasts = np.searchsorted(ordered, values, side="right")
    ranks: Array = (firsts + lasts - 1) / 2
    return ranks


def _normal_scores(values: Array) -> Array:
    normal = NormalDist()
    shares = (_ranks(values) + 0.5) / len(values)
    return np.array([normal.inv_cdf(share) for share in shares.tolist()])


def _best(column: Array, values: Array) -> Literal["lowest", "between", "highest"] | None:
    """Where the lowest values are: trials in equal parts along the axis, by their mean rank.

    A part in between has to beat both ends clearly: by a tenth of all ranks.
    """
    there = np.isfinite(column)
    count = int(there.sum())
    if count < FEWEST_TRIALS or not np.ptp(column[there]):
        return None
    ranks = _ranks(values[there])
    parts = np.array_split(np.argsort(column[there], kind="stable"), min(5, count // 4 + 1))
    means = [float(ranks[part].mean()) for part in parts]
    ends = min(means[0], means[-1])
    if min(means) < ends - count / 10:
        return "between"
    return "lowest" if means[0] <= means[-1] else "highest"


def front(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which rows are on the Pareto front: no other row beats them in every column.

    Every column is minimised; a row with NaN is never on it.
    """
    candidates = np.flatnonzero(np.isfinite(values).all(axis=1))
    # The best sums first: they exclude most of the others at once.
    candidates = candidates[np.argsort(values[candidates].sum(axis=1), kind="stable")]
    rows: list[int] = []
    while len(candidates):
        chosen = int(candidates[0])
        rows.append(chosen)
        rest = candidates[1:]
        is_beaten = (values[rest] >= values[chosen]).all(axis=1) & (
            values[rest] > values[chosen]
        ).any(axis=1)
        candidates = rest[~is_beaten]
    on_front = np.zeros(len(values), dtype=np.bool_)
    on_front[rows] = True
    return on_front
