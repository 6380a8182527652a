"""A run that begins with the rows of another.

Rows are copied from the first on, each with the number that it has among those which the child
gets. So what an interrupted fork has copied is a beginning, and the next try goes on behind it.
"""

from __future__ import annotations

from sqlite3 import Connection

import numpy as np

from runyard.server.history import pieces
from runyard.server.history.columns import FLOAT, INTEGER, Column, Numbers
from runyard.server.history.history import HISTORY, count_rows
from runyard.server.history.metric_keys import STEP, known_keys
from runyard.server.store.store import Slice, Transfer


class Fork(Transfer):
    """Begins a run with another's rows up to a step, the first ones first."""

    def __init__(self, parent: int, child: int, step: float) -> None:
        self._parent, self._child, self._step = parent, child, step
        # The parent's next row, and how many rows before it are too late for the child.
        self._next = 0
        self._passed_over = 0
        self._copied: int | None = None

    def into(self, child: int) -> Fork:
        return Fork(self._parent, child, self._step)

    def plan(self, db: Connection) -> Slice | None:
        if self._copied is None:
            # What an interrupted fork has copied already is there.
            self._copied = count_rows(db, self._child, HISTORY)
        step = known_keys(db, [STEP]).get(STEP, -1)
        for extent in pieces.extents(db, self._parent, HISTORY, self._next):
            later = _rows_after(
                pieces.columns_of(db, self._parent, HISTORY, extent, frozenset([step])),
                self._step,
            )
            before = self._passed_over
            self._next, self._passed_over = extent.stop, before + len(later)
            if extent.stop - self._passed_over <= self._copied:
                continue
            if extent.start >= self._copied and not self._passed_over:
                whole = pieces.load(db, self._parent, HISTORY, extent)
                if whole.blob is not None or _values(whole) <= pieces.MOST_VALUES:
                    return self._copy([whole])
            columns = pieces.columns_of(db, self._parent, HISTORY, extent)
            _, copied = pieces.split(columns, later)
            copied = [_moved_up(column, later, before) for column in copied]
            made = pieces.make(
                db, [pieces.between(column, self._copied, 2**62) for column in copied]
            )
            if made:
                return self._copy(made)
        return None

    def _copy(self, copies: list[pieces.Piece]) -> Slice:
        def fork(db: Connection) -> None:
            for piece in copies:
                pieces.store(db, self._child, HISTORY, piece)

        return fork


def _rows_after(steps: list[Column], step: float) -> Numbers:
    later = []
    for column in steps:
        if column.kind in (FLOAT, INTEGER):
            values = np.asarray(column.values, np.float64)
            # An infinite step is none, as for rewinds and syncs.
            later.append(column.lines[np.where(np.isfinite(values), values, -1.0) > step])
    return np.sort(np.concatenate(later)) if later else np.empty(0, np.int64)


def _moved_up(column: Column, later: Numbers, before: int) -> Column:
    """Under the child's numbers: rows that are too late leave no gap."""
    return column.at(column.lines - before - np.searchsorted(later, column.lines))


def _values(piece: pieces.Piece) -> int:
    return sum(count for _, level, _, count, _, _ in piece.series if level == 0)
