"""Continuous probability laws: quantile and cumulative, each the other's inverse.

Uses only the standard library, because the server draws from them and never loads scipy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Protocol

from runyard.search import beta

_STANDARD = NormalDist()


class Law(Protocol):
    """A continuous distribution. Both functions increase; `low` and `high` may be infinite."""

    @property
    def low(self) -> float: ...

    @property
    def high(self) -> float: ...

    def quantile(self, u: float) -> float: ...

    def cumulative(self, x: float) -> float: ...


@dataclass(frozen=True)
class Uniform:
    low: float
    high: float

    def quantile(self, u: float) -> float:
        return self.low + u * (self.high - self.low)

    def cumulative(self, x: float) -> float:
        return _share(x, self.low, self.high)


@dataclass(frozen=True)
class LogUniform:
    """exp of a uniform between two exponents."""

    low_exponent: float
    high_exponent: float

    @property
    def low(self) -> float:
        return math.exp(self.low_exponent)

    @property
    def high(self) -> float:
        return math.exp(self.high_exponent)

    def quantile(self, u: float) -> float:
        return math.exp(self.low_exponent + u * (self.high_exponent - self.low_exponent))

    def cumulative(self, x: float) -> float:
        return _share(math.log(x), self.low_exponent, self.high_exponent) if x > 0 else 0.0


@dataclass(frozen=True)
class Normal:
    mu: float
    sigma: float
    low = -math.inf
    high = math.inf

    def quantile(self, u: float) -> float:
        return self.mu + self.sigma * _STANDARD.inv_cdf(u)

    def cumulative(self, x: float) -> float:
        if self.sigma == 0:
            return 0.5 if x == self.mu else float(x > self.mu)
        # erfc, not erf: it is exact in the lower tail.
        return 0.5 * math.erfc((self.mu - x) / (self.sigma * math.sqrt(2)))


@dataclass(frozen=True)
class LogNormal:
    mu: float
    sigma: float
    low = math.ulp(0.0)  # above 0
    high = math.inf

    def quantile(self, u: float) -> float:
        return math.exp(Normal(self.mu, self.sigma).quantile(u))

    def cumulative(self, x: float) -> float:
        return Normal(self.mu, self.sigma).cumulative(math.log(x)) if x > 0 else 0.0


@dataclass(frozen=True)
class Beta:
    a: float
    b: float
    low = 0.0
    high = 1.0

    def quantile(self, u: float) -> float:
        return beta.quantile(u, self.a, self.b)

    def cumulative(self, x: float) -> float:
        return beta.cumulative(x, self.a, self.b)


def _share(x: float, low: float, high: float) -> float:
    return min(1.0, max(0.0, (x - low) / (high - low)))
