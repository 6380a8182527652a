"""Unseen tasks that train: small models, each a function of its settings alone."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.datasets import load_digits, make_friedman1
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from sklearn.svm import SVC

from benchmarks.search.tasks import Settings

Curve = Callable[[np.ndarray], np.ndarray]
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]

WORST = 3.0  # a diverged training counts with this loss
EPOCHS = 15


@functools.lru_cache(maxsize=1)
def digits() -> Split:
    warnings.filterwarnings("ignore")  # "did not converge": the steps are few on purpose
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(61).permutation(len(labels))
    images, labels = images[order] / 16.0, labels[order]
    return images[:500], labels[:500], images[500:1500], labels[500:1500]


@functools.lru_cache(maxsize=1)
def friedman() -> Split:
    rows, target = make_friedman1(450, n_features=8, noise=1.0, random_state=62)
    return rows[:150], target[:150], rows[150:], target[150:]


@functools.lru_cache(maxsize=1)
def spirals() -> Split:
    rng = np.random.default_rng(63)
    kind = np.arange(600) % 2
    turn = np.sqrt(rng.uniform(0.05, 1, 600)) * 3 * np.pi
    rows = np.stack([np.cos(turn + np.pi * kind), np.sin(turn + np.pi * kind)], 1)
    rows = rows * turn[:, None] / 9 + rng.normal(0, 0.04, (600, 2))
    return rows[:300], kind[:300], rows[300:], kind[300:]


ACTIVATIONS: dict[object, tuple[Curve, Curve]] = {
    "relu": (lambda x: np.maximum(x, 0), lambda x: (x > 0) * 1.0),
    "sine": (np.sin, np.cos),
    "tanh": (np.tanh, lambda x: 1 - np.tanh(x) ** 2),
}


def spirals_network(settings: Settings) -> float:
    """Two hidden layers in numpy, gradient descent with momentum; the loss on unseen points."""
    train, kinds, test, truth = spirals()
    rng = np.random.default_rng(0)
    bend, slope = ACTIVATIONS[settings["activation"]]
    width, batch = int(settings["width"]), int(settings["batch"])
    sizes = [(2, width), (width, width), (width, 1)]
    weights = [rng.normal(0, settings["init"] / np.sqrt(a), (a, b)) for a, b in sizes]
    weights += [np.zeros(b) for _, b in sizes]
    speeds = [np.zeros_like(weight) for weight in weights]

    def forward(rows: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        inner, outer = [], [rows]
        for layer in range(3):
            inner.append(outer[-1] @ weights[layer] + weights[3 + layer])
            outer.append(bend(inner[-1]) if layer < 2 else inner[-1])
        return inner, outer

    with np.errstate(all="ignore"):
        for _ in range(EPOCHS):
            order = rng.permutation(len(train))
            for start in range(0, len(train), batch):
                some = order[start : start + batch]
                inner, outer = forward(train[some])
                chance = 1 / (1 + np.exp(-inner[2][:, 0]))
                back = ((chance - kinds[some]) / len(some))[:, None]
                for layer in (2, 1, 0):
                    steps = (layer, outer[layer].T @ back), (3 + layer, back.sum(0))
                    back = back @ weights[layer].T
                    back = back * slope(inner[layer - 1]) if layer else back
                    for at, step in steps:
                        step = step + settings["decay"] * weights[at]
                        speeds[at] = settings["momentum"] * speeds[at] - settings["lr"] * step
                        weights[at] = weights[at] + speeds[at]
        side = np.where(truth == 1, -1, 1) * forward(test)[1][3][:, 0]
        loss = float(np.logaddexp(0, side).mean())
    return min(loss, WORST) if np.isfinite(loss) else WORST


def forest_digits(settings: Settings) -> float:
    train, labels, test, truth = digits()
    model = RandomForestClassifier(
        settings["trees"],
        criterion=settings["criterion"],
        max_depth=settings["depth"],
        min_samples_leaf=settings["leaf"],
        max_features=settings["features"],
        bootstrap=settings["bootstrap"],
        max_samples=settings["rows"] if settings["bootstrap"] else None,
        random_state=0,
    )
    return float(1.0 - model.fit(train, labels).score(test, truth))


def boosting_friedman(settings: Settings) -> float:
    train, target, test, truth = friedman()
    model = GradientBoostingRegressor(
        loss=settings["loss"],
        learning_rate=settings["lr"],
        n_estimators=settings["trees"],
        max_depth=settings["depth"],
        min_samples_leaf=settings["leaf"],
        subsample=settings["subsample"],
        alpha=settings["alpha"],
        random_state=0,
    )
    return float(np.mean((model.fit(train, target).predict(test) - truth) ** 2))


def pipeline_digits(settings: Settings) -> float:
    train, labels, test, truth = digits()
    few = 200  # the labelled ones; the components come from all
    parts = PCA(settings["components"], whiten=settings["whiten"], random_state=0).fit(train)
    model = SVC(
        C=settings["C"],
        gamma=settings["gamma"],
        kernel=settings["kernel"],
        degree=settings["degree"],
        coef0=settings["offset"],
        max_iter=2000,
    )
    model.fit(parts.transform(train[:few]), labels[:few])
    return float(1.0 - model.score(parts.transform(test), truth))


def gaussian_process_waves(settings: Settings) -> float:
    """Negative log density of unseen points of a wave with a trend, by fixed kernels."""
    from sklearn.gaussian_process.kernels import ExpSineSquared, Matern

    rng = np.random.default_rng(65)
    x = np.sort(rng.uniform(0, 10, 160))[:, None]
    y = np.sin(2.3 * x[:, 0]) * np.exp(-0.1 * x[:, 0]) + 0.1 * x[:, 0] + rng.normal(0, 0.15, 160)
    y = y - y.mean()
    kernel = settings["mix"] * Matern(settings["length"], nu=settings["smoothness"])
    kernel += (1 - settings["mix"]) * ExpSineSquared(settings["second_length"], settings["period"])
    train = np.arange(160) % 4 > 0
    among = kernel(x[train]) + (settings["noise"] + 1e-8) * np.eye(int(train.sum()))
    cross = kernel(x[~train], x[train])
    solved = np.linalg.solve(among, cross.T)
    mean = solved.T @ y[train]
    variance = np.maximum(1 - (cross.T * solved).sum(axis=0), 0) + settings["noise"] + 1e-8
    loss = float(np.mean(0.5 * np.log(variance) + (y[~train] - mean) ** 2 / (2 * variance)))
    return min(loss, WORST) if np.isfinite(loss) else WORST
