"""A space as arrays: snapping, neighbours and quasi-random points for many points at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from runyard.search.engines.sobol import sobol
from runyard.search.space import Leaf, Point, Space

Array = NDArray[np.float64]

MESH = 2048  # resolution of the search for the steps of a quantised leaf
GLANCE = 64  # of the mesh tell a leaf without steps
MANY_CATEGORIES = 16  # beyond this, only a random part of them is used
MANY_LEVELS = 512  # beyond this a quantised leaf is as good as continuous


def snapping_table(leaf: Leaf) -> Array | None:
    """The value that each part of [0, 1] snaps to; None for a leaf without steps, or very many."""
    mesh = (np.arange(MESH) + 0.5) / MESH
    snapped = np.empty(MESH)
    for index, place in enumerate(mesh.tolist()):
        back = leaf.distribution.encode(leaf.distribution.decode(place))
        snapped[index] = place if back is None else back
        if index == GLANCE and np.abs(snapped[:GLANCE] - mesh[:GLANCE]).max() < 1e-6:
            return None
    return snapped if len(np.unique(snapped)) <= MANY_LEVELS else None


class Coordinates:
    def __init__(self, space: Space) -> None:
        self.space = space
        leaves = space.leaves
        self.count = len(leaves)
        self.categories = np.array([leaf.categories for leaf in leaves], dtype=np.int64)
        self.is_categorical = np.array([leaf.is_categorical for leaf in leaves], dtype=bool)
        tables = {
            index: snapping_table(leaf)
            for index, leaf in enumerate(leaves)
            if not leaf.is_categorical
        }
        self.tables = {index: table for index, table in tables.items() if table is not None}
        self.steps = {index: np.unique(table) for index, table in self.tables.items()}
        self.is_stepped = np.isin(np.arange(self.count), list(self.tables))
        self.is_smooth = ~self.is_categorical & ~self.is_stepped
        self.is_finite = not self.is_smooth.any()

    def choices(self, index: int) -> Array:
        """Every coordinate that a leaf without smooth values can have."""
        if self.is_stepped[index]:
            return self.steps[index]
        return np.arange(self.categories[index], dtype=float)

    def snap(self, rows: Array) -> Array:
        snapped: Array = rows.copy()
        for leaf, table in self.tables.items():
            at = np.clip((rows[:, leaf] * MESH).astype(np.int64), 0, MESH - 1)
            snapped[:, leaf] = table[at]
        return snapped

    def of_units(self, units: Array) -> Array:
        """Rows of the unit cube as points: categories by their share, steps snapped."""
        rows = np.clip(units, 0.0, 1.0)
        shares = np.minimum(np.floor(rows * self.categories), np.maximum(self.categories - 1, 0))
        return self.snap(np.asarray(np.where(self.is_categorical, shares, rows)))

    def sobol(self, count: int, seed: Sequence[int], skip: int = 0) -> Array:
        return self.of_units(sobol(self.count, count, seed, skip))

    def point(self, row: Array) -> Point:
        """The exact point of a row: the one that its settings encode to."""
        return self.space.snap(tuple(float(value) for value in row))

    def neighbours(self, row: Array, rng: np.random.Generator) -> Array:
        """Every change of one category; for a stepped leaf the steps next to it, and a far one."""
        rows = []
        for leaf in np.flatnonzero(~self.is_smooth).tolist():
            others = self.choices(leaf)
            if self.is_stepped[leaf]:
                at = int(np.searchsorted(others, row[leaf]))
                near = {at - 2, at - 1, at, at + 1, at + 2, int(rng.integers(len(others)))}
                others = others[[index for index in sorted(near) if 0 <= index < len(others)]]
            elif len(others) > MANY_CATEGORIES:
                others = rng.choice(others, MANY_CATEGORIES, replace=False)
            for other in others[others != row[leaf]]:
                changed = row.copy()
                changed[leaf] = other
                rows.append(changed)
        return np.array(rows).reshape(-1, self.count)
