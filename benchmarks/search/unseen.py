"""Fifteen tasks that judge the engine and nothing else: no choice in it was made by them.

Ten are formulas, five train models (unseen_models.py). They were written before `bayes` learned
directions, which the rotated ones among the fresh tasks had asked for.
"""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.search import unseen_formulas as formulas
from benchmarks.search.fresh import box
from benchmarks.search.fresh_formulas import with_noise
from benchmarks.search.tasks import Settings, Task, among, integer, log, uniform

NOISE_OF_RATES, NOISE_OF_TERRACES = 0.25, 0.8


def trained(name: str) -> Callable[[Settings], float]:
    def value(settings: Settings) -> float:
        from benchmarks.search import unseen_models  # scikit-learn: an extra of the benchmark alone

        return float(getattr(unseen_models, name)(settings))

    return value


def tasks() -> dict[str, Task]:
    return {task.name: task for task in [*formula_tasks(), *training_tasks()]}


def formula_tasks() -> list[Task]:
    return [
        Task("eggs2", box(2, -512, 512), formulas.eggs, -959.6406627106155),
        Task("wells4", box(4, 0, 1), formulas.wells),
        Task("rotated-ridge6", box(6, -5, 5), formulas.rotated_ridge, 0.0),
        Task("rotated-griewank5", box(5, -60, 60), formulas.rotated_griewank, 0.0),
        Task("powell12", box(12, -4, 5), formulas.powell, 0.0),
        Task(
            "cliff-of-rates",
            {
                "lr": log(1e-5, 10.0),
                "momentum": uniform(0, 0.99),
                "decay": log(1e-7, 0.1),
                "smoothing": uniform(0, 0.5),
                "batch": {"distribution": "q_log_uniform_values", "min": 8, "max": 512, "q": 8},
            },
            formulas.cliff_of_rates,
        ),
        Task(
            "layers-if-there",
            {f"width{i}": integer(8, 256) for i in range(4)}
            | {
                "layers": integer(1, 4),
                "lr": log(1e-5, 0.1),
                "norm": among("batch", "layer", "none"),
                "dropout": uniform(0, 0.8),
            },
            formulas.layers_if_there,
        ),
        Task(
            "noisy-rates",
            {
                "lr": log(1e-6, 1.0),
                "decay": log(1e-8, 0.1),
                "dropout": uniform(0, 0.9),
                "optimizer": among("adam", "lion", "sgd"),
            },
            with_noise(formulas.rates, NOISE_OF_RATES),
            0.0,
            formulas.rates,
        ),
        Task(
            "noisy-terraces5",
            box(5, -4, 4),
            with_noise(formulas.terraces, NOISE_OF_TERRACES),
            0.0,
            formulas.terraces,
        ),
        Task(
            "tiles",
            {"rows": integer(1, 64), "columns": integer(1, 64), "depth": integer(1, 64)}
            | {"stages": integer(1, 8), "unroll": among(1, 2, 4, 8)}
            | {"order": among("ijk", "ikj", "jik", "kij"), "vector": among(False, True)},
            formulas.tiles,
        ),
    ]


def training_tasks() -> list[Task]:
    return [
        Task(
            "spirals-network",
            {
                "lr": log(1e-4, 3.0),
                "momentum": uniform(0, 0.99),
                "width": {"distribution": "q_log_uniform_values", "min": 4, "max": 64, "q": 4},
                "init": log(0.05, 5.0),
                "decay": log(1e-7, 0.1),
                "activation": among("relu", "sine", "tanh"),
                "batch": among(32, 64),
            },
            trained("spirals_network"),
        ),
        Task(
            "forest-digits",
            {
                "trees": integer(2, 15),
                "depth": integer(2, 20),
                "leaf": integer(1, 20),
                "features": uniform(0.02, 1.0),
                "criterion": among("entropy", "gini"),
                "bootstrap": among(False, True),
                "rows": uniform(0.1, 1.0),
            },
            trained("forest_digits"),
        ),
        Task(
            "boosting-friedman",
            {
                "lr": log(0.005, 1.0),
                "trees": integer(5, 40),
                "depth": integer(1, 6),
                "leaf": integer(1, 30),
                "subsample": uniform(0.2, 1.0),
                "loss": among("absolute_error", "huber", "squared_error"),
                "alpha": uniform(0.5, 0.99),
            },
            trained("boosting_friedman"),
        ),
        Task(
            "pipeline-digits",
            {
                "components": integer(2, 40),
                "whiten": among(False, True),
                "C": log(1e-3, 1e4),
                "gamma": log(1e-6, 10.0),
                "kernel": among("linear", "poly", "rbf", "sigmoid"),
                "degree": integer(1, 5),
                "offset": uniform(0, 5),
            },
            trained("pipeline_digits"),
        ),
        Task(
            "gaussian-process-waves",
            {
                "length": log(1e-2, 1e2),
                "second_length": log(1e-2, 1e2),
                "period": log(0.05, 20.0),
                "mix": uniform(0, 1),
                "noise": log(1e-6, 1.0),
                "smoothness": among(0.5, 1.5, 2.5),
            },
            trained("gaussian_process_waves"),
        ),
    ]
