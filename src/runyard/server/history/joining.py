"""Joins batches of history to segments, in the background, for as long as the server runs.

A join is planned beside the writer, as that takes long.
"""

from __future__ import annotations

import asyncio
import logging
import time
from sqlite3 import Connection

from runyard.server.history import pieces, segments
from runyard.server.history.columns import heads
from runyard.server.history.history import EVENTS, HISTORY
from runyard.server.history.pieces import Extent
from runyard.server.runs import runs, states
from runyard.server.store.store import Slice, Store, Transfer

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
        pieces.replace(db, run, stream, taken, made)

    return join


log = logging.getLogger(__name__)

_LOOK_EVERY = 2.0
# Runs that end without a last word (crashed, or while we were down) are looked for this rarely.
_SEARCH_EVERY = 60.0


class Joiner:
    """Knows which runs have new batches; joins them when enough wait, or when the run has ended.

    It counts what comes, and looks into the store only where that may be enough: with hundreds of
    runs, a look at each of them would be a good part of the server's work.
    """

    def __init__(self) -> None:
        self._came: dict[int, tuple[int, int]] = {}  # run → batches and rows since the last look
        self._to_look_at: set[int] = set()

    def note(self, run: int, rows: int, *, complete: bool) -> None:
        # What waits of a run that is new to us (we may just have started), only the store knows.
        batches, before = self._came.get(run, (segments.BATCHES, 0))
        self._came[run] = (batches + 1, before + rows)
        if complete or batches >= segments.BATCHES or before + rows >= segments.ROWS:
            self._to_look_at.add(run)
            self._came[run] = (0, 0)

    def take_due(self) -> set[int]:
        """Runs of which enough may wait; they are not named again until as much has come anew."""
        due, self._to_look_at = self._to_look_at, set()
        return due

    async def work(self, store: Store) -> None:
        next_search = 0.0
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            if time.monotonic() >= next_search:
                next_search = time.monotonic() + _SEARCH_EVERY
                self._to_look_at |= await _search(store)
            for run in self.take_due():
                try:
                    await store.transfer(run, Join(run))
                except Exception:
                    log.exception("could not join the history of run %d", run)


async def _search(store: Store) -> set[int]:
    try:
        return await store.read(ended_unjoined)
    except Exception:
        log.exception("could not look for runs whose history is to be joined")
        return set()


def ended_unjoined(db: Connection) -> set[int]:
    """Runs that are over and have batches to be joined."""
    alive = ", ".join(f"'{state}'" for state in MAY_GROW)
    rows = db.execute(
        "SELECT batches.run FROM batches JOIN runs ON runs.key = batches.run "
        f"WHERE batches.stream IN ({HISTORY}, {EVENTS}) AND runs.state NOT IN ({alive}) "
        "GROUP BY batches.run, batches.stream HAVING count(*) > 1"
    )
    return {row["run"] for row in rows}
