"""Transforms values for the Gaussian process: no heavy tail, mean 0, variance 1."""

from __future__ import annotations

import numpy as np

from runyard.search.engines.coordinates import Array

HEAVY = 3.0  # times as wide above the median as below it
POWERS = np.linspace(-0.97, 1.93, 59)


def warp(values: Array) -> Array:
    """Keeps the order; values far worse than the others are compressed.

    A loss that explodes for some settings only means "bad", and would otherwise dominate the whole
    scale.
    """
    low, largest = float(values.min()), float(np.abs(values).max())
    spread = float(values.max()) - low
    if spread <= 1e-12 * largest:
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
    """Yeo-Johnson with the power that makes the values most normal."""
    tried = yeo_johnson(values[None], POWERS[:, None])
    slant = float((np.sign(values) * np.log1p(np.abs(values))).sum())
    fit = (POWERS - 1) * slant - 0.5 * len(values) * np.log(tried.var(axis=1) + 1e-300)
    return np.asarray(tried[int(np.argmax(fit))])


def yeo_johnson(values: Array, power: Array) -> Array:
    # The powers 0 and 2, for which the formula divides by zero, are not tried.
    above = ((1 + np.maximum(values, 0)) ** power - 1) / power
    below = -((1 - np.minimum(values, 0)) ** (2 - power) - 1) / (2 - power)
    return np.where(values >= 0, above, below)
