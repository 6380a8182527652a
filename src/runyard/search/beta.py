"""The beta distribution: the regularised incomplete beta function, and its inverse."""

from __future__ import annotations

import math

_TINY = 1e-300
_MOST_TERMS = 100_000  # the fraction needs about sqrt(max(a, b)) of them
_HALVINGS = 200


def cumulative(x: float, a: float, b: float) -> float:
    """The share of Beta(a, b) that lies below x."""
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    # The fraction converges fast below the mean; above it, the other tail is counted.
    if x <= (a + 1) / (a + b + 2):
        return min(1.0, front * _fraction(x, a, b) / a)
    return max(0.0, 1 - front * _fraction(1 - x, b, a) / b)


def quantile(u: float, a: float, b: float) -> float:
    """The x below which the share u of Beta(a, b) lies."""
    # Halving the exponent and the number in turn finds 1e-200 as surely as 0.3.
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high) if low and high / low > 2 else (low + high) / 2
        if not low and cumulative(high * 1e-3, a, b) > u:
            high *= 1e-3
            continue
        if middle in (low, high):
            break
        if cumulative(middle, a, b) < u:
            low = middle
        else:
            high = middle
    return high


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
