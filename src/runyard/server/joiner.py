"""Joins batches of history in the background, for as long as the server runs."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from typing import TYPE_CHECKING

from runyard.server import states
from runyard.server.store import runs, segments
from runyard.server.store.history import EVENTS, HISTORY

if TYPE_CHECKING:
    from runyard.server.tracker import Tracker

log = logging.getLogger(__name__)

_LOOK_EVERY = 2.0


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

    async def work(self, tracker: Tracker) -> None:
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            for run in self.take_due():
                try:
                    # One stretch a change: others get their turn in between.
                    while await tracker.write(join_if_due, run):
                        pass
                except Exception:
                    log.exception("could not join the history of run %d", run)


def join_if_due(connection: sqlite3.Connection, run: int) -> bool:
    """Join one stretch of a run's batches where it is time to. Says whether it did."""
    row = runs.by_key(connection, run)
    if row is None:
        return False
    ended = row["state"] not in (*states.ALIVE, "pending")
    for stream in (HISTORY, EVENTS):
        due = segments.waiting(connection, run, stream) > 1 if ended else False
        if due or segments.due(connection, run, stream):
            return segments.join_batches(connection, run, stream)
    return False
