"""Points that fill the unit cube evenly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

DIMENSIONS = 21_201  # the most dimensions of scipy's direction numbers
LENGTH = 2**30  # the length of its sequence


def sobol(dimensions: int, count: int, seed: Sequence[int], skip: int = 0) -> NDArray[np.float64]:
    """Points `skip` to `skip + count` of the sequence that the seed scrambles."""
    from scipy.stats import qmc

    if not 0 < dimensions <= DIMENSIONS or not 0 <= skip < LENGTH - 2 * count:
        return np.random.default_rng([*seed, max(0, skip)]).random((count, dimensions))
    draws = qmc.Sobol(dimensions, scramble=True, seed=np.random.default_rng(list(seed)))
    if skip:
        draws.fast_forward(skip)
        return np.asarray(draws.random(count))
    # scipy warns if the first request is not a power of two.
    return np.asarray(draws.random(1 << max(0, count - 1).bit_length()))[:count]
