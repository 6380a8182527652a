"""A small Gaussian process: Matérn 5/2 over all coordinates together, and over each one alone.

The squared distance of two points is the sum, over coordinates, of the squared difference (for a
number) or 1 if they differ (for a category), each divided by its squared length scale. A kernel of
a single coordinate lets the model learn the effect of one parameter from all points, whatever
their other parameters are. The likelihood decides how much each part counts, and whether the
length scales belong to the parameters or to directions across them: along a narrow valley that
several parameters form together, no parameter alone is short or long.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from runyard.search.engines.coordinates import Array

ROOT5 = 5**0.5
FIT_STEPS = 20

# Priors, as normal distributions of logarithms. Length scales grow with the root of the dimension,
# since distances in the unit cube do: otherwise all points are far apart in ten dimensions.
LENGTH_AT_ONE, LENGTH_SPREAD = 0.3, 1.0
SINGLE_LENGTH, SINGLE_LENGTH_SPREAD = 0.3, 1.0
# Shares of the middle. A shorter kernel fits noise as if it were the function.
SHORTEST, SHORTEST_SINGLE = 0.3, 0.15
# Two random numbers of [0, 1] are 0.4 apart at root mean square; two categories mostly 1.
CATEGORY_LENGTH = 2.2
SCALE_SPREAD = 0.7
SINGLE_SCALE, SINGLE_SCALE_SPREAD = 0.3, 1.5
NOISE, NOISE_SPREAD = 1e-3, 3.0
SMALLEST_NOISE, LARGEST_NOISE = 1e-6, 1.0
BLOCK = 64  # rows at a time, so that a block stays in the cache


@dataclass(frozen=True)
class Kernel:
    lengths: Array  # of the kernel over all coordinates
    single_lengths: Array  # of the kernels of single coordinates
    scale: float  # variance of the function's part over all coordinates
    single_scale: float  # variance of its parts over single coordinates, together
    noise: float  # variance of what is measured about it
    directions: Array | None = None  # of the lengths, among the numbers; None: the parameters

    @property
    def variance(self) -> float:
        return self.scale + self.single_scale


@dataclass(frozen=True)
class Pairs:
    """Every pair of different points: their indices, and squared differences per coordinate."""

    count: int
    first: NDArray[np.intp]
    second: NDArray[np.intp]
    squares: Array
    roots: Array


def pairs_of(x: Array, is_categorical: NDArray[np.bool_], directions: Array | None = None) -> Pairs:
    first, second = np.triu_indices(len(x), 1)
    apart = np.abs(x[first] - x[second]).T.copy()
    apart[is_categorical] = apart[is_categorical] != 0
    along = turned(x, is_categorical, directions)
    squares = (along[first] - along[second]).T ** 2
    squares[is_categorical] = apart[is_categorical]
    return Pairs(len(x), first, second, squares, apart)


def turned(x: Array, is_categorical: NDArray[np.bool_], directions: Array | None) -> Array:
    """Points whose numbers are measured along the directions."""
    if directions is None:
        return x
    rows: Array = x.copy()
    rows[:, ~is_categorical] = x[:, ~is_categorical] @ directions
    return rows


def prior_of(is_categorical: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Middle and spread of the logarithms: both kinds of lengths, both scales, the noise."""
    dimensions = max(1, len(is_categorical))
    categories = np.where(is_categorical, np.log(CATEGORY_LENGTH), 0.0)
    middle = np.concatenate(
        [
            np.log(LENGTH_AT_ONE * np.sqrt(dimensions)) + categories,
            np.log(SINGLE_LENGTH) + categories,
            [0.0, np.log(SINGLE_SCALE), np.log(NOISE)],
        ]
    )
    spread = np.repeat(
        [LENGTH_SPREAD, SINGLE_LENGTH_SPREAD, SCALE_SPREAD, SINGLE_SCALE_SPREAD, NOISE_SPREAD],
        [len(is_categorical), len(is_categorical), 1, 1, 1],
    )
    return middle, spread


def kernel_of(logs: Array, directions: Array | None = None) -> Kernel:
    values = np.exp(logs)
    half = (len(logs) - 3) // 2
    scale, single_scale, noise = values[-3:].tolist()
    return Kernel(values[:half], values[half:-3], scale, single_scale, noise, directions)


def fit_kernel(x: Array, y: Array, is_categorical: NDArray[np.bool_]) -> Kernel:
    """The more probable of two kernels: along the parameters, and along the steepest directions."""
    kernel, lowest = most_probable(x, y, is_categorical, None)
    directions = steepest(Posterior(kernel, x, y, x[:0], is_categorical))
    if directions is None:
        return kernel
    other, surprise_of_other = most_probable(x, y, is_categorical, directions)
    return other if surprise_of_other < lowest else kernel


def steepest(posterior: Posterior) -> Array | None:
    """Directions at right angles, by how much the mean changes along them at the known points."""
    numeric = ~posterior.is_categorical
    if numeric.sum() < 2:
        return None
    slopes = np.array([posterior.slopes(row)[2][numeric] for row in posterior.x])
    return np.asarray(np.linalg.eigh(slopes.T @ slopes)[1])


def most_probable(
    x: Array, y: Array, is_categorical: NDArray[np.bool_], directions: Array | None
) -> tuple[Kernel, float]:
    """A kernel and the negative log of its probability; the prior's if the data says nothing."""
    from scipy.optimize import minimize

    middle, spread = prior_of(is_categorical)
    pairs = pairs_of(x, is_categorical, directions)
    dimensions = len(is_categorical)
    least, most = middle - 5 * spread, middle + 5 * spread
    least[:dimensions] = middle[:dimensions] + np.log(SHORTEST)
    least[dimensions:-3] = middle[dimensions:-3] + np.log(SHORTEST_SINGLE)
    least[-1], most[-1] = np.log(SMALLEST_NOISE), np.log(LARGEST_NOISE)
    result = minimize(
        surprise,
        middle,
        args=(pairs, y, middle, spread),
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(least, most, strict=True)),
        options={"maxiter": FIT_STEPS, "maxfun": 2 * FIT_STEPS},
    )
    if not np.isfinite(result.fun):
        return kernel_of(middle, directions), np.inf
    return kernel_of(result.x, directions), float(result.fun)


def surprise(
    logs: Array, pairs: Pairs, y: Array, middle: Array, spread: Array
) -> tuple[float, Array]:
    """Negative log of likelihood times prior, and its gradient."""
    from scipy.linalg.lapack import dpotrf, dpotri

    kernel = kernel_of(logs)
    half = len(kernel.lengths)
    weights = kernel.lengths**-2.0
    root = ROOT5 * np.sqrt(weights @ pairs.squares)
    decay = np.exp(-root)
    together = kernel.scale * (1 + root + root * root / 3) * decay
    each = kernel.single_scale / max(1, half)
    roots = pairs.roots * (ROOT5 / kernel.single_lengths)[:, None]
    decays = each * np.exp(-roots)
    bend = roots * (1 + roots) / 3
    alone = (decays * (bend + 1 + roots * (2 / 3))).sum(axis=0)
    among = np.zeros((pairs.count, pairs.count))
    among[pairs.second, pairs.first] = together + alone
    np.fill_diagonal(among, kernel.variance * (1 + 1e-8) + kernel.noise)
    lower, failed = dpotrf(among, lower=1)
    if failed:
        return 1e25, np.zeros_like(logs)
    inverse = dpotri(lower, lower=1)[0]
    solved = symmetric(inverse) @ y
    off = (logs - middle) / spread
    value = 0.5 * y @ solved + np.log(np.diag(lower)).sum() + 0.5 * off @ off
    # Of the upper half; each pair counts twice, which the half before the trace takes back.
    slope = inverse[pairs.second, pairs.first] - solved[pairs.second] * solved[pairs.first]
    trace = float(np.trace(inverse) - solved @ solved)
    gradient = np.empty_like(logs)
    gradient[:half] = weights * (
        pairs.squares @ (slope * (kernel.scale * 5 / 3) * (1 + root) * decay)
    )
    gradient[half:-3] = (decays * bend * roots) @ slope
    gradient[-3] = together @ slope + 0.5 * kernel.scale * trace
    gradient[-2] = alone @ slope + 0.5 * kernel.single_scale * trace
    gradient[-1] = 0.5 * kernel.noise * trace
    return float(value), gradient + off / spread


def symmetric(lower: Array) -> Array:
    """The matrix of which only the lower half is filled."""
    return np.asarray(np.tril(lower) + np.tril(lower, -1).T)


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
        self.turned = turned(self.x, is_categorical, kernel.directions)
        self.weights = 1.0 / kernel.lengths**2
        self.single_rates = ROOT5 / kernel.single_lengths
        self.each = kernel.single_scale / max(1, len(is_categorical))
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
        total = matern(root)
        total *= self.kernel.scale
        for start in range(0, len(rows), BLOCK):
            self.add_singles(rows[start : start + BLOCK], total[start : start + BLOCK])
        return total

    def add_singles(self, rows: Array, total: Array) -> None:
        for leaf, rate in enumerate(self.single_rates.tolist()):
            place, places = rows[:, leaf][:, None], self.x[:, leaf][None]
            if self.is_categorical[leaf]:
                other = self.each * float(matern(np.array(rate)))
                total += np.where(place == places, self.each, other)
            else:
                root = np.abs(rate * place - rate * places)
                alone = matern(root)
                alone *= self.each
                total += alone

    def squares(self, rows: Array) -> Array:
        numeric = ~self.is_categorical
        rows = turned(rows, self.is_categorical, self.kernel.directions)
        a = rows[:, numeric] * np.sqrt(self.weights[numeric])
        b = self.turned[:, numeric] * np.sqrt(self.weights[numeric])
        total = (a * a).sum(1)[:, None] + (b * b).sum(1)[None] - 2 * a @ b.T
        for leaf in np.flatnonzero(self.is_categorical):
            total += self.weights[leaf] * (rows[:, leaf][:, None] != self.x[:, leaf][None])
        return np.asarray(np.maximum(total, 0.0))

    def predict(self, rows: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of the function at the rows."""
        cross = self.covariance(rows)
        variance = self.kernel.variance - np.einsum(
            "ij,jk,ik->i", cross, self.inverse, cross, optimize=True
        )
        return cross @ self.solved, np.sqrt(np.maximum(variance, 1e-12 * self.kernel.variance))

    def slopes(self, row: Array) -> tuple[float, float, Array, Array]:
        """Mean and deviation at one row, and how they change along each coordinate."""
        apart = row[None] - self.x
        root = ROOT5 * np.sqrt(self.squares(row[None])[0])
        decay = np.exp(-root)
        cross = self.kernel.scale * (1 + root + root * root / 3) * decay
        steep = -self.kernel.scale * 5 / 3 * (1 + root) * decay
        along = turned(row[None], self.is_categorical, self.kernel.directions) - self.turned
        along *= steep[:, None] * self.weights[None]
        if self.kernel.directions is not None:
            numeric = ~self.is_categorical
            along[:, numeric] = along[:, numeric] @ self.kernel.directions.T
        size = np.where(self.is_categorical[None], apart != 0, np.abs(apart))
        roots = size * self.single_rates[None]
        decays = self.each * np.exp(-roots)
        cross += (decays * (1 + roots + roots * roots / 3)).sum(axis=1)
        along -= decays * (1 + roots) * apart * (self.single_rates**2 / 3)[None]
        reach = self.inverse @ cross
        least = 1e-12 * self.kernel.variance
        deviation = float(np.sqrt(max(self.kernel.variance - cross @ reach, least)))
        return (
            float(cross @ self.solved),
            deviation,
            along.T @ self.solved,
            -(along.T @ reach) / deviation,
        )


def matern(root: Array) -> Array:
    # In place: this is most of the work of a suggestion.
    value = root * (1 / 3)
    value += 1
    value *= root
    value += 1
    value *= np.exp(-root)
    return np.asarray(value)


def factor(among: Array, kernel: Kernel) -> Array:
    """Cholesky factor with the noise, and with as much more noise as necessary."""
    from scipy.linalg import cholesky

    extra = 1e-8 * kernel.variance
    while True:
        try:
            return np.asarray(
                cholesky(among + (kernel.noise + extra) * np.eye(len(among)), lower=True)
            )
        except np.linalg.LinAlgError:
            extra *= 10
