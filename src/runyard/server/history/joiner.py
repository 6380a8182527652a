"""Joins batches of history in the background, for as long as the server runs."""

from __future__ import annotations

import asyncio
import logging
import time
from sqlite3 import Connection

from runyard.server.history import segments
from runyard.server.history.history import EVENTS, HISTORY
from runyard.server.history.joining import MAY_GROW, Join
from runyard.server.store.store import Store

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
        "SELECT batches.run FROM batches JOIN runs ON runs.key = batches.run "  # noqa: S608
        f"WHERE batches.stream IN ({HISTORY}, {EVENTS}) AND runs.state NOT IN ({alive}) "
        "GROUP BY batches.run, batches.stream HAVING count(*) > 1"
    )
    return {row["run"] for row in rows}
