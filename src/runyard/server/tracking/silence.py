"""What the server does by itself, for as long as it runs: notice who is not heard any more."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from runyard.server.runs import states
from runyard.server.store.store import Store
from runyard.server.tracking import streams

log = logging.getLogger(__name__)

_LOOK_EVERY = 10.0


class SilenceClock:
    """Since when we could have heard everybody.

    While we were down, or this machine slept, nobody could be heard: silence counts from our own
    return at the earliest.
    """

    def __init__(self, now: float) -> None:
        self._since = self._last_look = now

    def silent_before(self, now: float) -> float | None:
        """Who was last heard before this time has fallen silent; None if it is too soon to say."""
        # A look that comes this late, or before the last one, was not ours to time.
        if not 0 <= now - self._last_look < states.SILENT_SECONDS / 2:
            self._since = now
        self._last_look = now
        before = now - states.SILENT_SECONDS
        return before if self._since <= before else None


async def watch_silence(store: Store, take_in_leftovers: Callable[[], None]) -> None:
    """Every few seconds: take in what dead processes left, and mark runs that fell silent."""
    listening = SilenceClock(time.time())
    while True:
        await asyncio.sleep(_LOOK_EVERY)
        try:
            await asyncio.to_thread(take_in_leftovers)
            before = listening.silent_before(time.time())
            marked = await store.write(streams.mark_silent, before) if before is not None else 0
        except Exception:
            log.exception("could not look for silent runs")
            continue
        if marked:
            log.info("%d runs fell silent", marked)
