"""Formulas of the fresh tasks: shifted, rotated, noisy, stepped, conditional and categorical."""

from __future__ import annotations

import functools
import json
import math
import zlib
from collections.abc import Callable

import numpy as np

from benchmarks.search.tasks import Settings, vector


def shift(seed: int, low: float, high: float, count: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(low, high, count)


@functools.lru_cache(maxsize=8)
def rotation(seed: int, count: int) -> np.ndarray:
    return np.asarray(np.linalg.qr(np.random.default_rng(seed).normal(size=(count, count)))[0])


def with_noise(value: Callable[[Settings], float], deviation: float) -> Callable[[Settings], float]:
    """Adds normal noise that depends on the settings alone, so every engine meets the same."""

    def noisy(settings: Settings) -> float:
        text = json.dumps(settings, sort_keys=True, default=float)
        rng = np.random.default_rng(zlib.crc32(text.encode()))
        return value(settings) + deviation * float(rng.normal())

    return noisy


# Used to choose the engine.


def cosines(settings: Settings) -> float:
    """Separable, with ten basins a parameter that are nearly equal."""
    z = vector(settings, 5) - shift(21, -1, 1, 5)
    return float((0.5 * z * z + 0.5 * (1 - np.cos(5 * math.pi * z))).sum())


def rotated_bowl(settings: Settings) -> float:
    z = rotation(22, 6) @ (vector(settings, 6) - shift(22, -2, 2, 6))
    return math.log1p(float((10 ** np.linspace(0, 2, 6) * z * z).sum()))


def bowl(settings: Settings) -> float:
    z = vector(settings, 4) - shift(23, -2, 2, 4)
    return float((np.array([1.0, 2.0, 4.0, 0.5]) * z * z).sum() + z[0] * z[1])


def steps_and_choices(settings: Settings) -> float:
    x = np.array([settings[f"n{i}"] for i in range(4)], dtype=float)
    target = np.array([5, 17, 9, 2])
    total = float((np.floor(np.abs(x - target) / 2) * np.array([1.0, 0.5, 2.0, 3.0])).sum())
    total += {"a": 0.0, "b": 3.0, "c": 6.0}[settings["kind"]]
    best = 0.2 if settings["kind"] == "a" else 0.7
    return total + 4 * abs(float(settings["x"]) - best)


def branches(settings: Settings) -> float:
    """The branch says which of the parameters count."""
    a, b, c = settings["a"], settings["b"], math.log10(settings["c"])
    if settings["branch"] == "first":
        return float(0.3 + (a - 0.7) ** 2 * 4 + 0.3 * math.sin(9 * b) ** 2)
    if settings["branch"] == "second":
        return float(0.1 + (c + 3.3) ** 2 * 0.3 + (b - 0.15) ** 2 * 2)
    return float(0.5 + 0.2 * a + 0.1 * (c + 1) ** 2)


# Used to judge the engine.


def rastrigin(settings: Settings) -> float:
    z = vector(settings, 6) - shift(31, -3, 3, 6)
    return float((z * z - 10 * np.cos(2 * math.pi * z) + 10).sum())


def michalewicz(settings: Settings) -> float:
    x = vector(settings, 5)
    bumps = np.sin(np.arange(1, 6) * x * x / math.pi) ** 20
    return -float((np.sin(x) * bumps).sum())


def schwefel(settings: Settings) -> float:
    x = vector(settings, 5)
    return 5 * 418.98288727243374 - float((x * np.sin(np.sqrt(np.abs(x)))).sum())


def rotated_ellipsoid(settings: Settings) -> float:
    z = rotation(34, 8) @ (vector(settings, 8) - shift(34, -3, 3, 8))
    return float((1000 ** (np.arange(8) / 7) * z * z).sum())


SHEKEL_A = np.array(
    [
        [4, 1, 8, 6, 3, 2, 5, 8, 6, 7],
        [4, 1, 8, 6, 7, 9, 3, 1, 2, 3.6],
        [4, 1, 8, 6, 3, 2, 5, 8, 6, 7],
        [4, 1, 8, 6, 7, 9, 3, 1, 2, 3.6],
    ]
).T
SHEKEL_C = np.array([1, 2, 2, 4, 4, 6, 3, 7, 5, 5]) / 10


def shekel(settings: Settings) -> float:
    return -float((1 / (((vector(settings, 4) - SHEKEL_A) ** 2).sum(axis=1) + SHEKEL_C)).sum())


def log_goldstein(settings: Settings) -> float:
    x, y = settings["x0"], settings["x1"]
    near = 1 + (x + y + 1) ** 2 * (19 - 14 * x + 3 * x * x - 14 * y + 6 * x * y + 3 * y * y)
    far = 30 + (2 * x - 3 * y) ** 2 * (18 - 32 * x + 12 * x * x + 48 * y - 36 * x * y + 27 * y * y)
    return math.log10(near * far)


def plateau(settings: Settings) -> float:
    z = vector(settings, 6) - shift(37, -3, 3, 6)
    return float(np.floor(np.abs(z) * np.array([2.0, 1.0, 1.0, 0.5, 0.5, 2.0])).sum())


def valley_of_rates(settings: Settings) -> float:
    """Log-scaled rates of which a product and a ratio count."""
    lr, decay, clip, warm = (
        math.log10(settings[name]) for name in ("lr", "decay", "clip", "warmup")
    )
    batch = math.log2(settings["batch"])
    ridge = (lr + 3 - 0.3 * (batch - 6)) ** 2 + 0.4 * (lr + decay + 6.5) ** 2
    return float(ridge + 0.05 * (clip - 0.2) ** 2 + 0.1 * math.tanh(warm - 2) ** 2 + 0.02 * batch)


def optimizers(settings: Settings) -> float:
    """Conditional: momentum counts for sgd only, beta and epsilon for adam only."""
    lr = math.log10(settings["lr"])
    if settings["optimizer"] == "sgd":
        loss = 0.15 * (lr + 1.2 + settings["momentum"]) ** 2
        loss += 0.4 * (settings["momentum"] - 0.9) ** 2 + 0.05
    elif settings["optimizer"] == "adam":
        loss = 0.25 * (lr + 3.1) ** 2 + 0.5 * (settings["beta"] - 0.93) ** 2
        loss += 0.02 * (math.log10(settings["epsilon"]) + 7) ** 2
    else:
        loss = 0.3 + 0.1 * (lr + 2) ** 2
    schedule = {"constant": 0.1, "cosine": 0.0, "step": 0.04}[settings["schedule"]]
    return float(math.log1p(loss) + schedule + 0.01 * abs(settings["layers"] - 7))


def lattice(settings: Settings) -> float:
    """Eight integers, each tied to the next."""
    x = np.array([settings[f"n{i}"] for i in range(8)], dtype=float)
    x = x - np.array([3, 9, 1, 14, 6, 11, 2, 8])
    return float((x * x).sum() / 8 + np.abs(x[1:] - x[:-1]).sum() / 2)


@functools.lru_cache(maxsize=1)
def tables_of_pairs() -> np.ndarray:
    return np.asarray(np.random.default_rng(42).uniform(size=(6, 5, 5)))


def pairs_of_choices(settings: Settings) -> float:
    """Six choices in a ring: each neighbouring pair has a cost; two numbers beside them."""
    letters = ["abcde".index(settings[f"c{i}"]) for i in range(6)]
    costs = tables_of_pairs()
    total = sum(float(costs[i, letters[i], letters[(i + 1) % 6]]) for i in range(6))
    return float(total + 2 * (settings["x"] - 0.3) ** 2 + (settings["y"] - settings["x"]) ** 2)
