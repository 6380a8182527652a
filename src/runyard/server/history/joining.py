"""Batches that are joined to segments; planned beside the writer, as it takes long."""

from __future__ import annotations

from sqlite3 import Connection

from runyard.server.history import pieces, segments
from runyard.server.history.columns import heads
from runyard.server.history.history import EVENTS, HISTORY
from runyard.server.history.pieces import Extent
from runyard.server.runs import runs, states
from runyard.server.store.transfers import Slice, Transfer

# While a run has one of these states, more rows may come.
MAY_GROW = (*states.ALIVE, "pending")


class Join(Transfer):
    """Joins the batches of a run where it is time to."""

    def __init__(self, run: int) -> None:
        self._run = run

    def plan(self, db: Connection) -> Slice | None:
        row = runs.by_key(db, self._run)
        if row is None:
            return None
        ended = row["state"] not in MAY_GROW
        for stream in (HISTORY, EVENTS):
            waits = ended and segments.waiting(db, self._run, stream) > 1
            if waits or segments.due(db, self._run, stream):
                return plan_join(db, self._run, stream)
        return None


def join_batches(db: Connection, run: int, stream: int) -> bool:
    """Join the oldest batches that wait, due or not. Says whether there were any."""
    part = plan_join(db, run, stream)
    if part is not None:
        part(db)
    return part is not None


def plan_join(db: Connection, run: int, stream: int) -> Slice | None:
    """Put a stretch of batches, the oldest that wait, into segments."""
    taken: list[Extent] = []
    values = 0
    for extent in pieces.extents(db, run, stream):
        # Nothing may stand between them: segments and batches keep one order.
        if extent.blob is None:
            if taken:
                break
            continue
        values += sum(count for _, _, count in heads(extent.blob))
        if taken and values > pieces.MOST_VALUES:
            break
        taken.append(extent)
    if not taken:
        return None
    made = pieces.make(
        db, (column for extent in taken for column in pieces.columns_of(db, run, stream, extent))
    )

    def join(db: Connection) -> None:
        for extent in taken:
            pieces.remove(db, run, stream, extent)
        for piece in made:
            pieces.store(db, run, stream, piece)

    return join
