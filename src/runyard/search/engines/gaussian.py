"""A small Gaussian process: Matérn 5/2, one length scale per coordinate, categories by mismatch.

The squared distance of two points is the sum, over coordinates, of the squared difference (for a
number) or 1 if they differ (for a category), each divided by its squared length scale.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from runyard.search.engines.coordinates import Array

ROOT5 = 5**0.5
FIT_STEPS = 40

# Priors, as normal distributions of logarithms. Length scales grow with the root of the dimension,
# since distances in the unit cube do: otherwise all points are far apart in ten dimensions.
LENGTH_AT_ONE, LENGTH_SPREAD = 0.3, 1.0
# Two random numbers of [0, 1] are 0.4 apart at root mean square; two categories mostly 1.
CATEGORY_LENGTH = 2.2
SCALE_SPREAD = 0.7
NOISE, NOISE_SPREAD = 1e-3, 2.0
SMALLEST_NOISE, LARGEST_NOISE = 1e-6, 1.0


@dataclass(frozen=True)
class Kernel:
    lengths: Array
    scale: float  # variance of the function
    noise: float  # variance of what is measured about it


def differences(a: Array, b: Array, is_categorical: NDArray[np.bool_]) -> Array:
    """Squared differences, one matrix per coordinate."""
    apart = a.T[:, :, None] - b.T[:, None, :]
    squares: Array = apart * apart
    squares[is_categorical] = apart[is_categorical] != 0
    return squares


def prior_of(is_categorical: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Middle and spread of log length scales, log scale and log noise."""
    dimensions = len(is_categorical)
    middle = np.full(dimensions + 2, np.log(LENGTH_AT_ONE * np.sqrt(max(1, dimensions))))
    middle[:-2][is_categorical] += np.log(CATEGORY_LENGTH)
    middle[-2:] = 0.0, np.log(NOISE)
    spread = np.full(dimensions + 2, LENGTH_SPREAD)
    spread[-2:] = SCALE_SPREAD, NOISE_SPREAD
    return middle, spread


def fit_kernel(x: Array, y: Array, is_categorical: NDArray[np.bool_]) -> Kernel:
    """The most probable kernel, from two starts; that of the prior if the data says nothing."""
    from scipy.optimize import minimize

    middle, spread = prior_of(is_categorical)
    squares = differences(x, x, is_categorical)
    bounds = [(float(m - 5 * s), float(m + 5 * s)) for m, s in zip(middle, spread, strict=True)]
    bounds[-1] = (float(np.log(SMALLEST_NOISE)), float(np.log(LARGEST_NOISE)))
    shorter = middle - np.where(np.arange(len(middle)) < x.shape[1], 1.0, 0.0)
    best, lowest = middle, np.inf
    for start in (middle, shorter):
        result = minimize(
            surprise,
            start,
            args=(squares, y, middle, spread),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": FIT_STEPS, "maxfun": 2 * FIT_STEPS},
        )
        if np.isfinite(result.fun) and result.fun < lowest:
            best, lowest = result.x, float(result.fun)
    return Kernel(np.exp(best[:-2]), float(np.exp(best[-2])), float(np.exp(best[-1])))


def surprise(
    logs: Array, squares: Array, y: Array, middle: Array, spread: Array
) -> tuple[float, Array]:
    """Negative log of likelihood times prior, and its gradient."""
    from scipy.linalg import cho_solve, cholesky

    weights = np.exp(-2 * logs[:-2])
    scale, noise = np.exp(logs[-2]), np.exp(logs[-1])
    root = ROOT5 * np.sqrt(np.tensordot(weights, squares, 1))
    decay = np.exp(-root)
    plain = scale * (1 + root + root * root / 3) * decay
    identity = np.eye(len(y))
    try:
        lower = cholesky(plain + (noise + 1e-8 * scale) * identity, lower=True)
    except np.linalg.LinAlgError:
        return 1e25, np.zeros_like(logs)
    inverse = cho_solve((lower, True), identity)
    solved = inverse @ y
    off = (logs - middle) / spread
    value = 0.5 * y @ solved + np.log(np.diag(lower)).sum() + 0.5 * off @ off
    slope = inverse - np.outer(solved, solved)
    gradient = np.empty_like(logs)
    steep = slope * (scale * 5 / 3) * (1 + root) * decay
    gradient[:-2] = 0.5 * weights * np.tensordot(squares, steep, 2)
    gradient[-2] = 0.5 * float((slope * plain).sum())
    gradient[-1] = 0.5 * noise * float(np.trace(slope))
    return float(value), gradient + off / spread


class Posterior:
    """The posterior: results have their values, pending points their predicted mean.

    A point at its predicted mean does not change the mean, but removes the uncertainty around it.
    """

    def __init__(
        self,
        kernel: Kernel,
        x: Array,
        y: Array,
        pending: Array,
        is_categorical: NDArray[np.bool_],
    ) -> None:
        from scipy.linalg import cho_solve

        self.kernel = kernel
        self.is_categorical = is_categorical
        self.x = np.vstack([x, pending])
        self.weights = 1.0 / kernel.lengths**2
        self.among = self.covariance(self.x)
        known = len(y)
        self.lower = factor(self.among[:known, :known], kernel)
        self.solved = np.zeros(len(self.x))
        self.solved[:known] = cho_solve((self.lower, True), y)
        if len(pending):
            self.lower = factor(self.among, kernel)
        self.inverse = cho_solve((self.lower, True), np.eye(len(self.x)))

    def covariance(self, rows: Array) -> Array:
        root = ROOT5 * np.sqrt(self.squares(rows))
        return np.asarray(self.kernel.scale * (1 + root + root * root / 3) * np.exp(-root))

    def squares(self, rows: Array) -> Array:
        numeric = ~self.is_categorical
        a = rows[:, numeric] * np.sqrt(self.weights[numeric])
        b = self.x[:, numeric] * np.sqrt(self.weights[numeric])
        total = (a * a).sum(1)[:, None] + (b * b).sum(1)[None] - 2 * a @ b.T
        for leaf in np.flatnonzero(self.is_categorical):
            total += self.weights[leaf] * (rows[:, leaf][:, None] != self.x[:, leaf][None])
        return np.asarray(np.maximum(total, 0.0))

    def predict(self, rows: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of the function at the rows."""
        cross = self.covariance(rows)
        variance = self.kernel.scale - np.einsum(
            "ij,jk,ik->i", cross, self.inverse, cross, optimize=True
        )
        return cross @ self.solved, np.sqrt(np.maximum(variance, 1e-12 * self.kernel.scale))

    def slopes(self, row: Array) -> tuple[float, float, Array, Array]:
        """Mean and deviation at one row, and how they change along each coordinate."""
        root = ROOT5 * np.sqrt(self.squares(row[None])[0])
        decay = np.exp(-root)
        cross = self.kernel.scale * (1 + root + root * root / 3) * decay
        steep = -self.kernel.scale * 5 / 3 * (1 + root) * decay
        along = steep[:, None] * (row[None] - self.x) * self.weights[None]
        reach = self.inverse @ cross
        deviation = float(
            np.sqrt(max(self.kernel.scale - cross @ reach, 1e-12 * self.kernel.scale))
        )
        return (
            float(cross @ self.solved),
            deviation,
            along.T @ self.solved,
            -(along.T @ reach) / deviation,
        )


def factor(among: Array, kernel: Kernel) -> Array:
    """Cholesky factor with the noise, and with as much more noise as necessary."""
    from scipy.linalg import cholesky

    extra = 1e-8 * kernel.scale
    while True:
        try:
            return np.asarray(
                cholesky(among + (kernel.noise + extra) * np.eye(len(among)), lower=True)
            )
        except np.linalg.LinAlgError:
            extra *= 10
