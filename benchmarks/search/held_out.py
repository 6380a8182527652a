"""Tasks that nothing in the engine was chosen by: a check that it was not tuned to the eight."""

from __future__ import annotations

import math

import numpy as np
from benchmarks.search.tasks import Settings, Task, among, integer, log, uniform, vector

LEVY_SHIFT = np.random.default_rng(3).uniform(-3, 3, 8)


def levy(settings: Settings) -> float:
    w = 1 + (vector(settings, 8) - LEVY_SHIFT - 1) / 4
    head = math.sin(math.pi * w[0]) ** 2
    body = (w[:-1] - 1) ** 2 * (1 + 10 * np.sin(math.pi * w[:-1] + 1) ** 2)
    tail = (w[-1] - 1) ** 2 * (1 + math.sin(2 * math.pi * w[-1]) ** 2)
    return head + float(body.sum()) + float(tail)


def six_hump_camel(settings: Settings) -> float:
    x, y = settings["x0"], settings["x1"]
    return (4 - 2.1 * x * x + x**4 / 3) * x * x + x * y + (-4 + 4 * y * y) * y * y


def training_like(settings: Settings) -> float:
    """A loss over a learning rate, a decay, a depth and two choices, with a cliff and a ripple."""
    lr, decay = math.log10(settings["lr"]), math.log10(settings["decay"])
    best_lr = {"adam": -3.0, "sgd": -1.0, "rms": -3.5}[settings["optimizer"]]
    loss = 0.3 * (lr - best_lr) ** 2 + 0.05 * (decay + 4) ** 2 + 0.02 * abs(settings["depth"] - 6)
    loss += {"adam": 0.0, "sgd": 0.03, "rms": 0.08}[settings["optimizer"]]
    loss += 0.0 if settings["norm"] else 0.15 + 0.03 * settings["depth"]
    if lr > best_lr + 1.2:
        loss += 10.0
    return loss + 0.01 * math.sin(25 * lr) * math.cos(19 * decay) + 0.5 * settings["dropout"] ** 2


def griewank_integers(settings: Settings) -> float:
    x = np.array([settings[f"x{i}"] for i in range(5)], dtype=float) - np.array([3, -7, 12, 0, -20])
    return float((x * x).sum() / 400 - np.prod(np.cos(x / np.sqrt(np.arange(1, 6)))) + 1)


def styblinski_and_choices(settings: Settings) -> float:
    x = vector(settings, 5)
    twist = np.array([{"low": -1.0, "mid": 0.0, "high": 2.0}[settings[f"c{i}"]] for i in range(3)])
    base = 0.5 * float((x**4 - 16 * x**2 + 5 * x).sum())
    return base + float(((twist - x[:3] / 3) ** 2).sum()) * 5


def tasks() -> dict[str, Task]:
    found = [
        Task("levy8", {f"x{i}": uniform(-10, 10) for i in range(8)}, levy, 0.0),
        Task(
            "camel",
            {"x0": uniform(-3, 3), "x1": uniform(-2, 2)},
            six_hump_camel,
            -1.0316284534898774,
        ),
        Task(
            "training-like",
            {
                "lr": log(1e-6, 1.0),
                "decay": log(1e-8, 1e-1),
                "depth": integer(1, 12),
                "optimizer": among("adam", "rms", "sgd"),
                "norm": among(False, True),
                "dropout": uniform(0, 0.7),
            },
            training_like,
        ),
        Task(
            "griewank-int5", {f"x{i}": integer(-30, 30) for i in range(5)}, griewank_integers, 0.0
        ),
        Task(
            "styblinski-mixed",
            {f"x{i}": uniform(-5, 5) for i in range(5)}
            | {f"c{i}": among("high", "low", "mid") for i in range(3)},
            styblinski_and_choices,
        ),
    ]
    return {task.name: task for task in found}
