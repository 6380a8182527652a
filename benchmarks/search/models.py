"""Tasks that train: small scikit-learn models, each a function of its settings alone."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes, load_digits
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC

warnings.filterwarnings("ignore")  # "did not converge": the epochs are few on purpose


@functools.lru_cache(maxsize=1)
def digits() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    images, labels = images[order] / 16.0, labels[order]
    return images[:400], labels[:400], images[400:1200], labels[400:1200]


@functools.lru_cache(maxsize=1)
def diabetes() -> tuple[np.ndarray, np.ndarray]:
    rows, target = load_diabetes(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(target))
    return rows[order], target[order] / 77.0


def svm_digits(settings: Mapping[str, Any]) -> float:
    train, labels, test, truth = digits()
    model = SVC(C=settings["C"], gamma=settings["gamma"], kernel=settings["kernel"])
    return float(1.0 - model.fit(train, labels).score(test, truth))


def mlp_digits(settings: Mapping[str, Any]) -> float:
    train, labels, test, truth = digits()
    model = MLPClassifier(
        (int(settings["width"]),),
        activation=settings["activation"],
        solver=settings["solver"],
        alpha=settings["alpha"],
        batch_size=settings["batch"],
        learning_rate_init=settings["lr"],
        momentum=settings["momentum"],
        max_iter=12,
        random_state=0,
    )
    try:
        return float(1.0 - model.fit(train, labels).score(test, truth))
    except ValueError:  # the weights overflowed
        return 1.0


def gbm_diabetes(settings: Mapping[str, Any]) -> float:
    rows, target = diabetes()
    errors = []
    for fold in range(2):
        held = np.arange(len(target)) % 2 == fold
        model = GradientBoostingRegressor(
            learning_rate=settings["lr"],
            n_estimators=settings["trees"],
            max_depth=settings["depth"],
            min_samples_leaf=settings["leaf"],
            subsample=settings["subsample"],
            max_features=settings["features"],
            random_state=fold,
        )
        model.fit(rows[~held], target[~held])
        errors.append(float(np.mean((model.predict(rows[held]) - target[held]) ** 2)))
    return float(np.mean(errors))
