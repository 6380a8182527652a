"""The trials that none of the others beats in everything: the Pareto front."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def front(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which rows are on the front; every column is to be made small, and NaN is never there."""
    candidates = np.flatnonzero(np.isfinite(values).all(axis=1))
    # The best sums first: they throw out most of the others at once.
    candidates = candidates[np.argsort(values[candidates].sum(axis=1), kind="stable")]
    kept: list[int] = []
    while len(candidates):
        chosen = int(candidates[0])
        kept.append(chosen)
        rest = candidates[1:]
        is_beaten = (values[rest] >= values[chosen]).all(axis=1) & (
            values[rest] > values[chosen]
        ).any(axis=1)
        candidates = rest[~is_beaten]
    on_front = np.zeros(len(values), dtype=np.bool_)
    on_front[kept] = True
    return on_front
