"""A run's rows get numbers without gaps again, after some between them were taken out."""

from __future__ import annotations

from dataclasses import dataclass
from sqlite3 import Connection

import numpy as np

from runyard.server.history import pieces
from runyard.server.history.columns import Column, Numbers
from runyard.server.history.pieces import Extent
from runyard.server.store.transfers import Changed, Slice


@dataclass
class _Group:
    """Pieces whose rows interleave: they are replaced together."""

    extents: list[Extent]
    numbers: Numbers


def close_gap(db: Connection, run: int, stream: int, first: int) -> Slice | None:
    """Moves rows behind the first gap from `first` on to the lowest free numbers, in their order.

    None if there is no gap. Each slice moves one group of pieces, the first ones first, so that no
    two rows ever have one number.
    """
    free = first
    for group in _groups(db, run, stream, first):
        targets = group.numbers.copy()
        behind = targets >= free
        targets[behind] = free + np.arange(np.count_nonzero(behind))
        if (targets != group.numbers).any():
            return _replace(db, run, stream, group, targets)
        free = int(targets[-1]) + 1
    return None


def _groups(db: Connection, run: int, stream: int, first: int) -> list[_Group]:
    groups: list[_Group] = []
    for extent in pieces.extents(db, run, stream, first):
        columns = pieces.columns_of(db, run, stream, extent)
        numbers = np.unique(np.concatenate([column.lines for column in columns]))
        if groups and extent.start <= groups[-1].numbers[-1]:
            groups[-1].extents.append(extent)
            groups[-1].numbers = np.union1d(groups[-1].numbers, numbers)
        else:
            groups.append(_Group([extent], numbers))
    return groups


def _replace(db: Connection, run: int, stream: int, group: _Group, targets: Numbers) -> Slice:
    columns = [
        Column(
            column.key,
            column.kind,
            targets[np.searchsorted(group.numbers, column.lines)],
            column.values,
        )
        for extent in group.extents
        for column in pieces.columns_of(db, run, stream, extent)
    ]
    made = pieces.make(db, columns)
    low, high = int(targets[0]), int(group.numbers[-1]) + 1

    def replace(db: Connection) -> None:
        if pieces.extents(db, run, stream, low, high) != group.extents:
            raise Changed(f"rows {low} to {high} of run {run} have changed")
        for extent in group.extents:
            pieces.remove(db, run, stream, extent)
        for piece in made:
            pieces.store(db, run, stream, piece)

    return replace
