"""Fresh tasks: six by which choices in the engine were made, and fifteen that only judge it.

No judgement task was looked at while the engine was changed.
"""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.search import fresh_formulas as formulas
from benchmarks.search.tasks import Settings, Task, among, integer, log, uniform

NOISE_OF_BOWL, NOISE_OF_GOLDSTEIN, NOISE_OF_PLATEAU = 2.0, 0.3, 1.5


def trained(name: str) -> Callable[[Settings], float]:
    def value(settings: Settings) -> float:
        from benchmarks.search import fresh_models  # scikit-learn: an extra of the benchmark alone

        return float(getattr(fresh_models, name)(settings))

    return value


def box(count: int, low: float, high: float) -> dict[str, dict[str, object]]:
    return {f"x{index}": uniform(low, high) for index in range(count)}


def development() -> dict[str, Task]:
    chosen = [
        Task("cosines5", box(5, -2, 2), formulas.cosines, 0.0),
        Task("rotated-bowl6", box(6, -4, 4), formulas.rotated_bowl, 0.0),
        Task(
            "noisy-bowl4",
            box(4, -4, 4),
            formulas.with_noise(formulas.bowl, NOISE_OF_BOWL),
            0.0,
            formulas.bowl,
        ),
        Task(
            "steps-and-choices",
            {f"n{i}": integer(0, 20) for i in range(4)}
            | {"kind": among("a", "b", "c"), "x": uniform(0, 1)},
            formulas.steps_and_choices,
            0.0,
        ),
        Task(
            "branches",
            {
                "a": uniform(0, 1),
                "b": uniform(0, 1),
                "c": log(1e-6, 1.0),
                "branch": among("first", "second", "third"),
            },
            formulas.branches,
            0.1,
        ),
        Task(
            "svr-diabetes",
            {
                "C": log(1e-3, 1e3),
                "gamma": log(1e-5, 10.0),
                "epsilon": log(1e-3, 1.0),
                "kernel": among("poly", "rbf", "sigmoid"),
            },
            trained("svr_diabetes"),
        ),
    ]
    return {task.name: task for task in chosen}


def judgement() -> dict[str, Task]:
    return {task.name: task for task in [*judgement_formulas(), *judgement_trainings()]}


def judgement_formulas() -> list[Task]:
    return [
        Task("rastrigin6", box(6, -5.12, 5.12), formulas.rastrigin, 0.0),
        Task("michalewicz5", box(5, 0, 3.141592653589793), formulas.michalewicz, -4.687658),
        Task("schwefel5", box(5, -500, 500), formulas.schwefel, 0.0),
        Task("rotated-ellipsoid8", box(8, -5, 5), formulas.rotated_ellipsoid, 0.0),
        Task("shekel4", box(4, 0, 10), formulas.shekel, -10.536443),
        Task(
            "noisy-goldstein",
            box(2, -2, 2),
            formulas.with_noise(formulas.log_goldstein, NOISE_OF_GOLDSTEIN),
            0.47712125471966244,
            formulas.log_goldstein,
        ),
        Task(
            "noisy-plateau6",
            box(6, -5, 5),
            formulas.with_noise(formulas.plateau, NOISE_OF_PLATEAU),
            0.0,
            formulas.plateau,
        ),
        Task(
            "valley-of-rates",
            {
                "lr": log(1e-6, 1.0),
                "decay": log(1e-8, 0.1),
                "clip": log(0.01, 100.0),
                "warmup": log(1.0, 1e4),
                "batch": {"distribution": "q_log_uniform_values", "min": 8, "max": 1024, "q": 8},
            },
            formulas.valley_of_rates,
        ),
        Task(
            "optimizers",
            {
                "optimizer": among("adam", "rprop", "sgd"),
                "schedule": among("constant", "cosine", "step"),
                "lr": log(1e-6, 1.0),
                "momentum": uniform(0, 1),
                "beta": uniform(0.5, 1),
                "epsilon": log(1e-10, 1e-2),
                "layers": integer(1, 12),
            },
            formulas.optimizers,
            0.0,
        ),
        Task("lattice8", {f"n{i}": integer(0, 15) for i in range(8)}, formulas.lattice, 0.0),
        Task(
            "pairs-of-choices",
            {f"c{i}": among("a", "b", "c", "d", "e") for i in range(6)}
            | {"x": uniform(0, 1), "y": uniform(0, 1)},
            formulas.pairs_of_choices,
        ),
    ]


def judgement_trainings() -> list[Task]:
    return [
        Task(
            "sgd-cancer",
            {
                "penalty": among("elasticnet", "l1", "l2"),
                "alpha": log(1e-7, 1.0),
                "l1_ratio": uniform(0, 1),
                "schedule": among("adaptive", "constant", "invscaling"),
                "lr": log(1e-5, 10.0),
                "power": uniform(0.05, 0.95),
                "epochs": integer(2, 20),
            },
            trained("sgd_cancer"),
        ),
        Task(
            "tree-wine",
            {
                "criterion": among("entropy", "gini"),
                "splitter": among("best", "random"),
                "depth": integer(1, 12),
                "split": integer(2, 40),
                "leaf": integer(1, 20),
                "features": uniform(0.1, 1.0),
                "pruning": log(1e-4, 0.3),
            },
            trained("tree_wine"),
        ),
        Task(
            "mlp-cancer",
            {
                "width": {"distribution": "q_log_uniform_values", "min": 4, "max": 64, "q": 4},
                "layers": integer(1, 3),
                "activation": among("logistic", "relu", "tanh"),
                "alpha": log(1e-6, 10.0),
                "lr": log(1e-5, 0.3),
                "one_minus_beta": log(0.01, 0.9),
            },
            trained("mlp_cancer"),
        ),
        Task(
            "ridge-diabetes",
            {
                "alpha": log(1e-4, 1e3),
                "kernel": among("laplacian", "poly", "rbf", "sigmoid"),
                "gamma": log(1e-5, 10.0),
                "degree": integer(1, 5),
                "offset": uniform(0, 3),
            },
            trained("ridge_diabetes"),
        ),
    ]
