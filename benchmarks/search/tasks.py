"""The tasks of the comparison: each a sweep's parameters and a function of them, to minimise.

Five are formulas, three train models (models.py).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Task:
    name: str
    parameters: dict[str, Any]
    value: Callable[[Settings], float]
    optimum: float | None = None  # None: the best value anybody ever found stands for it
    truth: Callable[[Settings], float] | None = None  # the value without noise, if it has noise

    @property
    def noiseless(self) -> Callable[[Settings], float]:
        return self.truth or self.value


def uniform(low: float, high: float) -> dict[str, Any]:
    return {"distribution": "uniform", "min": float(low), "max": float(high)}


def log(low: float, high: float) -> dict[str, Any]:
    return {"distribution": "log_uniform_values", "min": low, "max": high}


def integer(low: int, high: int) -> dict[str, Any]:
    return {"distribution": "int_uniform", "min": low, "max": high}


def among(*values: Any) -> dict[str, Any]:
    return {"values": list(values)}


def vector(settings: Settings, count: int) -> np.ndarray:
    return np.array([settings[f"x{index}"] for index in range(count)], dtype=float)


def branin(settings: Settings) -> float:
    x, y = settings["x0"], settings["x1"]
    b, c, t = 5.1 / (4 * math.pi**2), 5 / math.pi, 1 / (8 * math.pi)
    return float((y - b * x * x + c * x - 6) ** 2 + 10 * (1 - t) * math.cos(x) + 10)


HARTMANN_A = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
HARTMANN_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def hartmann(settings: Settings) -> float:
    inner = (HARTMANN_A * (vector(settings, 6) - HARTMANN_P) ** 2).sum(axis=1)
    return -float(np.array([1.0, 1.2, 3.0, 3.2]) @ np.exp(-inner))


# Off the centre, so that an engine that likes the middle of the box gains nothing by it.
ACKLEY_SHIFT = np.random.default_rng(7).uniform(-10, 10, 10)


def ackley(settings: Settings, dimensions: int = 10) -> float:
    z = vector(settings, dimensions) - ACKLEY_SHIFT[:dimensions]
    spread = -20 * math.exp(-0.2 * math.sqrt(float(np.mean(z * z))))
    return spread - math.exp(float(np.mean(np.cos(2 * math.pi * z)))) + 20 + math.e


BRANCHES = {"plain": (1.0, 0.0), "steep": (3.0, 0.5), "raised": (1.0, 20.0), "odd": (0.5, 50.0)}


def rosenbrock_mixed(settings: Settings) -> float:
    x = vector(settings, 4)
    factor, offset = BRANCHES[settings["branch"]]
    terms = 100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2
    return factor * float(terms.sum()) + offset


@functools.lru_cache(maxsize=1)
def landscape() -> tuple[np.ndarray, np.ndarray]:
    """NK landscape, 8 sites of 4 letters, each site's worth hangs on itself and 2 others."""
    rng = np.random.default_rng(11)
    links = np.array(
        [[i, *rng.choice([j for j in range(8) if j != i], 2, False)] for i in range(8)]
    )
    return links, rng.uniform(size=(8, 4, 4, 4))


def nk_of(letters: np.ndarray) -> float:
    links, worth = landscape()
    return -float(np.mean([worth[i][tuple(letters[links[i]])] for i in range(8)]))


def nk(settings: Settings) -> float:
    return nk_of(np.array(["abcd".index(settings[f"x{i}"]) for i in range(8)]))


@functools.lru_cache(maxsize=1)
def nk_optimum() -> float:
    links, worth = landscape()
    every = np.array(list(itertools.product(range(4), repeat=8)))
    total = sum(worth[i][tuple(every[:, links[i]].T)] for i in range(8))
    return -float(np.max(total)) / 8


def trained(name: str) -> Callable[[Settings], float]:
    def value(settings: Settings) -> float:
        from benchmarks.search import models  # scikit-learn: an extra of the benchmark alone

        return float(getattr(models, name)(settings))

    return value


def tasks() -> dict[str, Task]:
    found = [
        Task("branin", {"x0": uniform(-5, 10), "x1": uniform(0, 15)}, branin, 0.39788735772973816),
        Task("hartmann6", {f"x{i}": uniform(0, 1) for i in range(6)}, hartmann, -3.32236801141551),
        Task("ackley10", {f"x{i}": uniform(-32.768, 32.768) for i in range(10)}, ackley, 0.0),
        Task(
            "rosenbrock-mixed",
            {
                "x0": uniform(-3, 3),
                "x1": uniform(-3, 3),
                "x2": {"distribution": "q_uniform", "min": -3.0, "max": 3.0, "q": 0.25},
                "x3": integer(-3, 3),
                "branch": among("odd", "plain", "raised", "steep"),
            },
            rosenbrock_mixed,
            0.0,
        ),
        Task("nk", {f"x{i}": among("a", "b", "c", "d") for i in range(8)}, nk, nk_optimum()),
        Task(
            "svm-digits",
            {
                "C": log(1e-3, 1e3),
                "gamma": log(1e-6, 10.0),
                "kernel": among("poly", "rbf", "sigmoid"),
            },
            trained("svm_digits"),
        ),
        Task(
            "mlp-digits",
            {
                "lr": log(1e-5, 0.3),
                "alpha": log(1e-7, 1.0),
                "width": {"distribution": "q_log_uniform_values", "min": 8, "max": 128, "q": 8},
                "batch": among(16, 32, 64, 128),
                "activation": among("logistic", "relu", "tanh"),
                "momentum": uniform(0, 0.99),
                "solver": among("adam", "sgd"),
            },
            trained("mlp_digits"),
        ),
        Task(
            "gbm-diabetes",
            {
                "lr": log(0.005, 0.5),
                "trees": integer(10, 80),
                "depth": integer(1, 6),
                "leaf": integer(1, 40),
                "subsample": uniform(0.3, 1.0),
                "features": uniform(0.1, 1.0),
            },
            trained("gbm_diabetes"),
        ),
    ]
    return {task.name: task for task in found}
