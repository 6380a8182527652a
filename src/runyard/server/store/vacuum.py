"""Gives the space of deleted runs back, in the background and in small pieces."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from runyard.server.tracking.deletion import give_back

if TYPE_CHECKING:
    from runyard.server.tracker import Tracker

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

    async def work(self, tracker: Tracker) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                while await tracker.write(give_back, _PAGES_AT_ONCE):
                    pass
            except Exception:
                log.exception("could not give back the space of deleted runs")
