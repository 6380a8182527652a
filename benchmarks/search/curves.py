"""Learning curves of really trained networks: error on held-out digits after each epoch.

One hidden layer, momentum and weight decay, many settings trained at once in numpy. Kept in a file,
since training takes a minute or two.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

SETTINGS, EPOCHS = 480, 81
TRAINED, HELD = 600, 1000
SHAPES = [(width, batch) for width in (8, 32) for batch in (20, 60)]


def learning_curves(file: Path) -> np.ndarray:
    """Error rates, one row a setting, one column an epoch."""
    if not file.exists():
        per_shape = SETTINGS // len(SHAPES)
        curves = [train(*shape, per_shape, seed) for seed, shape in enumerate(SHAPES)]
        np.save(file, np.vstack(curves).astype(np.float32))
    return np.load(file).astype(float)


def train(width: int, batch: int, count: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    images, labels = (images[order] / 16.0 - 0.3).astype(np.float32), labels[order]
    x, held = images[:TRAINED], images[TRAINED : TRAINED + HELD]
    truth, held_truth = np.eye(10, dtype=np.float32)[labels[:TRAINED]], labels[TRAINED:][:HELD]

    def drawn(low: float, high: float) -> np.ndarray:
        return np.exp(rng.uniform(np.log(low), np.log(high), (count, 1, 1))).astype(np.float32)

    rate, decay, spread = drawn(1e-4, 3.0), drawn(1e-6, 1e-1), drawn(0.01, 2.0)
    momentum = rng.uniform(0, 0.98, (count, 1, 1)).astype(np.float32)
    first = (rng.standard_normal((count, 64, width)) * spread / 8).astype(np.float32)
    second = (rng.standard_normal((count, width, 10)) * spread / width**0.5).astype(np.float32)
    moving = [np.zeros_like(first), np.zeros_like(second)]
    errors = np.empty((count, EPOCHS))
    with np.errstate(all="ignore"):  # some rates are far too large, and are meant to be
        for epoch in range(EPOCHS):
            rows = rng.permutation(TRAINED)
            for start in range(0, TRAINED, batch):
                part = rows[start : start + batch]
                hidden = np.maximum(x[part] @ first, 0)
                scores = hidden @ second
                scores = np.exp(scores - scores.max(axis=2, keepdims=True))
                wrong = (scores / scores.sum(axis=2, keepdims=True) - truth[part]) / len(part)
                back = (wrong @ second.transpose(0, 2, 1)) * (hidden > 0)
                slopes = (x[part].T @ back, hidden.transpose(0, 2, 1) @ wrong)
                for index, (weights, slope) in enumerate(zip((first, second), slopes, strict=True)):
                    moving[index] = momentum * moving[index] - rate * (slope + decay * weights)
                    weights += moving[index]
            guesses = np.nan_to_num(np.maximum(held @ first, 0) @ second).argmax(axis=2)
            errors[:, epoch] = (guesses != held_truth).mean(axis=1)
    return errors
