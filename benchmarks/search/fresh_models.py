"""Fresh tasks that train: small scikit-learn models, each a function of its settings alone."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeClassifier

from benchmarks.search.tasks import Settings

Table = tuple[np.ndarray, np.ndarray]

WORST = 3.0  # a diverged training counts with this loss


@functools.lru_cache(maxsize=4)
def table(load: Callable[..., Any]) -> Table:
    """The rows in a random order, each column standardised."""
    warnings.filterwarnings("ignore")  # "did not converge": the epochs are few on purpose
    rows, target = load(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(target))
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    return rows[order], target[order]


def mean_over_folds(load: Callable[..., Any], folds: int, score: Callable[..., float]) -> float:
    rows, target = table(load)
    fold_of = np.arange(len(target)) % folds
    scores = []
    for fold in range(folds):
        test = fold_of == fold
        try:
            scores.append(score(rows[~test], target[~test], rows[test], target[test]))
        except ValueError:  # the weights overflowed
            scores.append(WORST)
    mean = float(np.mean(scores))
    return min(mean, WORST) if np.isfinite(mean) else WORST


def sgd_cancer(settings: Settings) -> float:
    def score(rows: Any, target: Any, test: Any, truth: Any) -> float:
        model = SGDClassifier(
            loss="log_loss",
            penalty=settings["penalty"],
            alpha=settings["alpha"],
            l1_ratio=settings["l1_ratio"],
            learning_rate=settings["schedule"],
            eta0=settings["lr"],
            power_t=settings["power"],
            max_iter=settings["epochs"],
            tol=None,
            random_state=0,
        )
        return float(log_loss(truth, model.fit(rows, target).predict_proba(test)))

    return mean_over_folds(load_breast_cancer, 3, score)


def tree_wine(settings: Settings) -> float:
    def score(rows: Any, target: Any, test: Any, truth: Any) -> float:
        model = DecisionTreeClassifier(
            criterion=settings["criterion"],
            splitter=settings["splitter"],
            max_depth=settings["depth"],
            min_samples_split=settings["split"],
            min_samples_leaf=settings["leaf"],
            max_features=settings["features"],
            ccp_alpha=settings["pruning"],
            random_state=0,
        )
        return float(1.0 - model.fit(rows, target).score(test, truth))

    return mean_over_folds(load_wine, 5, score)


def mlp_cancer(settings: Settings) -> float:
    def score(rows: Any, target: Any, test: Any, truth: Any) -> float:
        model = MLPClassifier(
            (settings["width"],) * settings["layers"],
            activation=settings["activation"],
            alpha=settings["alpha"],
            batch_size=32,
            learning_rate_init=settings["lr"],
            beta_1=1 - settings["one_minus_beta"],
            max_iter=5,
            random_state=0,
        )
        return float(log_loss(truth, model.fit(rows, target).predict_proba(test)))

    return mean_over_folds(load_breast_cancer, 2, score)


def ridge_diabetes(settings: Settings) -> float:
    def score(rows: Any, target: Any, test: Any, truth: Any) -> float:
        model = KernelRidge(
            alpha=settings["alpha"],
            kernel=settings["kernel"],
            gamma=settings["gamma"],
            degree=settings["degree"],
            coef0=settings["offset"],
        )
        middle = target.mean()
        model.fit(rows, (target - middle) / 77.0)
        return float(np.mean((model.predict(test) - (truth - middle) / 77.0) ** 2))

    return mean_over_folds(load_diabetes, 3, score)


def svr_diabetes(settings: Settings) -> float:
    def score(rows: Any, target: Any, test: Any, truth: Any) -> float:
        model = SVR(
            C=settings["C"],
            gamma=settings["gamma"],
            epsilon=settings["epsilon"],
            kernel=settings["kernel"],
            max_iter=1000,
        )
        middle = target.mean()
        model.fit(rows, (target - middle) / 77.0)
        return float(np.mean((model.predict(test) - (truth - middle) / 77.0) ** 2))

    return mean_over_folds(load_diabetes, 2, score)
