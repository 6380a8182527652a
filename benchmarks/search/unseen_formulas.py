"""Formulas of the unseen tasks: rotated, with ridges, cliffs, noise, or unused parameters."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.search.fresh_formulas import rotation, shift
from benchmarks.search.tasks import Settings, vector


def eggs(settings: Settings) -> float:
    """Eggholder: many deep basins, the best one in a corner."""
    x, y = settings["x0"], settings["x1"] + 47
    return float(
        -y * math.sin(math.sqrt(abs(settings["x0"] / 2 + y))) - x * math.sin(math.sqrt(abs(x - y)))
    )


WELLS = np.random.default_rng(51).uniform(0.1, 0.9, (7, 4))
DEPTHS = np.array([1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4])
WIDTHS = np.array([0.12, 0.15, 0.2, 0.25, 0.15, 0.3, 0.4])


def wells(settings: Settings) -> float:
    """Flat but for seven wells; the deepest is the narrowest."""
    apart = ((vector(settings, 4) - WELLS) ** 2).sum(axis=1)
    return -float((DEPTHS * np.exp(-apart / (2 * WIDTHS**2))).max())


def rotated_ridge(settings: Settings) -> float:
    """A slow way down along one direction, steep on both sides of it."""
    z = rotation(52, 6) @ (vector(settings, 6) - shift(52, -2, 2, 6))
    return float(z[0] ** 2 + 10 * math.sqrt(float((z[1:] ** 2).sum())))


def rotated_griewank(settings: Settings) -> float:
    z = rotation(53, 5) @ (vector(settings, 5) - shift(53, -30, 30, 5))
    return float((z * z).sum() / 400 - np.prod(np.cos(z / np.sqrt(np.arange(1, 6)))) + 1)


def powell(settings: Settings) -> float:
    """Powell's singular function: three blocks of four parameters that hang together."""
    a, b, c, d = (vector(settings, 12) - shift(54, -1, 1, 12)).reshape(3, 4).T
    terms = (a + 10 * b) ** 2 + 5 * (c - d) ** 2 + (b - 2 * c) ** 4 + 10 * (a - d) ** 4
    return float(terms.sum())


def cliff_of_rates(settings: Settings) -> float:
    """Best just before the training diverges, which momentum and batch size move."""
    lr, decay = math.log10(settings["lr"]), math.log10(settings["decay"])
    effective = lr - math.log10(1 - settings["momentum"]) - 0.5 * math.log10(settings["batch"] / 64)
    if effective > 0.4:
        return float(8 + effective)
    loss = 0.2 * (0.4 - effective) ** 1.5 + 0.04 * (decay + 3.6) ** 2
    return float(loss + (settings["smoothing"] - 0.12) ** 2 + 0.02 * math.log2(settings["batch"]))


def layers_if_there(settings: Settings) -> float:
    """The width of a layer counts only if the network has so many layers."""
    layers = int(settings["layers"])
    widths = np.log2([settings[f"width{i}"] for i in range(layers)])
    size = float(widths.sum())
    loss = 0.05 * float((np.diff(widths) ** 2).sum()) + 0.02 * (size - 17) ** 2
    best_lr = {"batch": -2.0, "layer": -2.6, "none": -3.4}[settings["norm"]] - 0.15 * layers
    loss += 0.3 * (math.log10(settings["lr"]) - best_lr) ** 2
    loss += {"batch": 0.1, "layer": 0.05, "none": 0.0}[settings["norm"]] * (4 - layers)
    return float(loss + 0.5 * (settings["dropout"] - 0.04 * size / layers) ** 2)


def rates(settings: Settings) -> float:
    lr, decay = math.log10(settings["lr"]), math.log10(settings["decay"])
    best, extra = {"adam": (-3.0, 0.0), "lion": (-4.1, 0.1), "sgd": (-0.9, 0.2)}[
        settings["optimizer"]
    ]
    loss = 0.5 * abs(lr - best) ** 1.5 + 0.1 * (lr + decay + 7.5) ** 2 + extra
    return float(loss + 0.8 * (settings["dropout"] - 0.25) ** 2)


def terraces(settings: Settings) -> float:
    """Steps of equal height around a point; each ring is flat."""
    z = rotation(58, 5) @ (vector(settings, 5) - shift(58, -2, 2, 5))
    return float(np.floor(math.sqrt(float((np.array([4, 2, 1, 1, 0.5]) * z * z).sum()))))


def tiles(settings: Settings) -> float:
    """The time of a tiled loop: sizes that do not divide the work, and a cache that overflows."""
    rows, columns, depth = (int(settings[name]) for name in ("rows", "columns", "depth"))
    waste = math.prod(
        math.ceil(side / tile) * tile / side
        for side, tile in ((384, rows), (448, columns), (256, depth))
    )
    held = (rows * depth + depth * columns) * settings["stages"] + rows * columns
    spill = max(0.0, math.log2(held / 6000))
    reuse = 40 / min(rows, 40) + 30 / min(columns, 30) + 6 / min(depth, 6)
    stride = {"ijk": 0.3, "ikj": 0.0, "jik": 0.4, "kij": 0.1}[settings["order"]]
    vector_gain = 0.7 if settings["vector"] and columns % 8 == 0 else 1.1
    unroll = 0.08 * abs(math.log2(settings["unroll"]) - (1 if depth % 4 else 2))
    latency = 0.5 / settings["stages"]
    return float(waste * vector_gain * (1 + 0.1 * reuse + stride + unroll + latency) + spill)
