"""Values as the Gaussian process wants them: no heavy tail, mean 0, variance 1."""

from __future__ import annotations

import numpy as np

from runyard.search.engines.coordinates import Array

HEAVY = 3.0  # times as wide above the median as below it


def warp(values: Array) -> Array:
    """Order is kept, and so is the shape among the best; far worse values are drawn in.

    A loss that explodes for some settings says "bad" there and nothing more, and would otherwise take
    the whole scale for itself.
    """
    low = float(values.min())
    spread = float(values.max()) - low
    if len(values) < 2 or not np.isfinite(spread) or spread <= 1e-12 * max(1.0, abs(low)):
        return np.zeros_like(values)
    unit = (values - low) / spread
    fifth, median, high = np.quantile(unit, [0.2, 0.5, 0.95])
    if high - median > HEAVY * (median - np.quantile(unit, 0.05)):
        knee = max(float(fifth), 1e-9)
        over = np.maximum(unit - knee, 0.0)
        unit = np.minimum(unit, knee) + knee * np.log1p(over / knee)
    else:
        unit = straighten(standardise(unit))
    return standardise(unit)


def standardise(values: Array) -> Array:
    deviation = float(values.std())
    return (values - values.mean()) / deviation if deviation > 1e-12 else np.zeros_like(values)


def straighten(values: Array) -> Array:
    """Yeo–Johnson with the power that looks most normal."""
    from scipy.stats import yeojohnson_llf

    powers = np.linspace(-1.0, 3.0, 41)
    return yeo_johnson(values, float(powers[np.argmax([yeojohnson_llf(p, values) for p in powers])]))


def yeo_johnson(values: Array, power: float) -> Array:
    from scipy.stats import yeojohnson

    return np.asarray(yeojohnson(values, power))
