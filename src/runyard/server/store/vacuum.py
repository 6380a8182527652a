"""Gives the space of deleted runs back, in the background and in small pieces."""

from __future__ import annotations

import asyncio
import logging
from sqlite3 import Connection

from runyard.server.store.store import Store

log = logging.getLogger(__name__)

# Some milliseconds of the writer's time each; others get their turn in between.
_PAGES_AT_ONCE = 500


class Vacuum:
    """Works when it is told that something was deleted, and once at the start."""

    def __init__(self) -> None:
        # The start counts: a server that was killed may have left some.
        self._wanted = asyncio.Event()
        self._wanted.set()

    def note(self) -> None:
        self._wanted.set()

    async def work(self, store: Store) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                while await store.write(give_back, _PAGES_AT_ONCE):
                    pass
            except Exception:
                log.exception("could not give back the space of deleted runs")


def give_back(db: Connection, pages: int) -> bool:
    """Hand unused pages back to the file system. Says whether there are more."""
    # Each page is one step of the statement: it must be run to its end.
    db.execute(f"PRAGMA incremental_vacuum({int(pages)})").fetchall()
    unused: int = db.execute("PRAGMA freelist_count").fetchone()[0]
    mode: int = db.execute("PRAGMA auto_vacuum").fetchone()[0]
    return unused > 0 and mode == 2
