"""The Pareto front: the trials that no other trial beats in every metric."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def front(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which rows are on the front. Every column is minimised; a row with NaN is never on it."""
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
