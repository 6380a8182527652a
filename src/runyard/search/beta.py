"""The beta distribution: the regularised incomplete beta function, and its inverse."""

from __future__ import annotations

import math

_TINY = 1e-300
_MOST_TERMS = 100_000  # the fraction needs about sqrt(max(a, b)) steps
_MOST_STEPS = 300
_PRECISION = 1e-14  # with a finer bound, rounding errors make the steps oscillate


def cumulative(x: float, a: float, b: float) -> float:
    """The share of Beta(a, b) that lies below x."""
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    front = math.exp(_scale(a, b) + a * math.log(x) + b * math.log1p(-x))
    # The fraction converges fast below the mean; above it, use the other tail.
    if x <= (a + 1) / (a + b + 2):
        return min(1.0, front * _fraction(x, a, b) / a)
    return max(0.0, 1 - front * _fraction(1 - x, b, a) / b)


def quantile(u: float, a: float, b: float) -> float:
    """The x below which the share u of Beta(a, b) lies: Newton's steps, kept between two bounds."""
    low, high = 0.0, 1.0
    x = a / (a + b)
    for _ in range(_MOST_STEPS):
        excess = cumulative(x, a, b) - u
        if abs(excess) <= _PRECISION * u:
            return x
        if excess < 0:
            low = x
        else:
            high = x
        density = _density(x, a, b)
        step = x - excess / density if 0 < density < math.inf else math.nan
        if not low < step < high:
            step = _between(low, high)
        if step in (low, high) or abs(step - x) <= _PRECISION * x:
            return step
        x = step
    return x


def _between(low: float, high: float) -> float:
    """Far below 1 by orders of magnitude, so that 1e-200 is found as surely as 0.3."""
    if low == 0:
        return high * 1e-3
    return math.sqrt(low * high) if high / low > 2 else (low + high) / 2


def _density(x: float, a: float, b: float) -> float:
    exponent = _scale(a, b) + (a - 1) * math.log(x) + (b - 1) * math.log1p(-x)
    return math.exp(min(exponent, 700.0))  # only to aim by: what misses is halved


def _scale(a: float, b: float) -> float:
    return math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > _TINY else _TINY)
    total = d
    for m in range(1, _MOST_TERMS):
        for step in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 + step * d
            d = 1 / (d if abs(d) > _TINY else _TINY)
            c = 1 + step / c
            c = c if abs(c) > _TINY else _TINY
            total *= c * d
        if abs(c * d - 1) < 1e-16:
            break
    return total
