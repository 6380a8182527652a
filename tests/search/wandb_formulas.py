"""W&B's distributions as scipy states them: what the codec has to agree with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy


def _rounded(ppf: Callable[[float], float], q: float) -> Callable[[float], float]:
    def value(u: float) -> float:
        multiple = np.round(ppf(u) / q) * q
        return int(multiple) if isinstance(q, int) else float(multiple)

    return value


def _uniform(low: float, high: float) -> Callable[[float], float]:
    return lambda u: float(scipy.stats.uniform.ppf(u, low, high - low))


def _exp(ppf: Callable[[float], float]) -> Callable[[float], float]:
    return lambda u: float(np.exp(ppf(u)))


def _inverse(low: float, high: float) -> Callable[[float], float]:
    return lambda u: float(np.exp(-scipy.stats.uniform.ppf(1 - u, low, high - low)))


def _weighted(values: list[Any], chances: list[float]) -> Callable[[float], Any]:
    return lambda u: values[int(np.argmin(u >= np.cumsum(chances)))]


# Each form with its keys, and the value at u.
FORMS: dict[str, tuple[dict[str, Any], Callable[[float], Any]]] = {
    "categorical": (
        {"values": ["a", "b", "c"]},
        lambda u: ["a", "b", "c"][int(scipy.stats.randint.ppf(u, 0, 3))],
    ),
    "categorical_w_probabilities": (
        {"values": ["a", "b", "c"], "probabilities": [0.2, 0.5, 0.3]},
        _weighted(["a", "b", "c"], [0.2, 0.5, 0.3]),
    ),
    "int_uniform": ({"min": -3, "max": 12}, lambda u: int(scipy.stats.randint.ppf(u, -3, 13))),
    "uniform": ({"min": -0.5, "max": 2}, _uniform(-0.5, 2)),
    "q_uniform": ({"min": 0.0, "max": 1.0, "q": 0.1}, _rounded(_uniform(0.0, 1.0), 0.1)),
    "log_uniform": ({"min": -9, "max": -2.5}, _exp(_uniform(-9, -2.5))),
    "log_uniform_values": (
        {"min": 1e-5, "max": 0.1},
        _exp(_uniform(float(np.log(1e-5)), float(np.log(0.1)))),
    ),
    "q_log_uniform": ({"min": 0, "max": 6, "q": 2}, _rounded(_exp(_uniform(0, 6)), 2)),
    "q_log_uniform_values": (
        {"min": 10, "max": 100, "q": 8},
        _rounded(_exp(_uniform(float(np.log(10)), float(np.log(100)))), 8),
    ),
    "inv_log_uniform": ({"min": 1, "max": 4}, _inverse(1, 4)),
    "inv_log_uniform_values": (
        {"min": 1e-3, "max": 10},
        _inverse(float(-np.log(10)), float(-np.log(1e-3))),
    ),
    "normal": ({"mu": 1, "sigma": 2.5}, lambda u: float(scipy.stats.norm.ppf(u, loc=1, scale=2.5))),
    "q_normal": (
        {"sigma": 10},
        _rounded(lambda u: float(scipy.stats.norm.ppf(u, loc=0, scale=10)), 1.0),
    ),
    "log_normal": (
        {"mu": -1, "sigma": 0.5},
        lambda u: float(scipy.stats.lognorm.ppf(u, s=0.5, scale=np.exp(-1))),
    ),
    "q_log_normal": (
        {"mu": 3, "sigma": 1, "q": 5},
        _rounded(lambda u: float(scipy.stats.lognorm.ppf(u, s=1, scale=np.exp(3))), 5),
    ),
    "beta": ({"a": 2, "b": 0.5}, lambda u: float(scipy.stats.beta.ppf(u, a=2, b=0.5))),
    "q_beta": (
        {"a": 0.5, "b": 3, "q": 0.05},
        _rounded(lambda u: float(scipy.stats.beta.ppf(u, a=0.5, b=3)), 0.05),
    ),
}
