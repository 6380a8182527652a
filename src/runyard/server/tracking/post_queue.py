"""Posts that come while the writer is at work wait, and are one change then."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from itertools import accumulate

from runyard.server.store.store import Store
from runyard.server.tracking.appending import Arrived, record_all
from runyard.server.tracking.streams import LARGEST_PART, Post, Recorded

_Waiting = tuple[Arrived, asyncio.Future[Recorded | None]]


class PostQueue:
    """Hands posts to the store. With thousands a second, a change each would cost too much."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting = list[_Waiting]()
        self._work: asyncio.Task[None] | None = None

    def hand_in(self, arrived: Arrived) -> asyncio.Future[Recorded | None]:
        """`streams.record`; done when it is on disk."""
        answer: asyncio.Future[Recorded | None] = asyncio.get_running_loop().create_future()
        self._waiting.append((arrived, answer))
        if self._work is None:
            self._work = asyncio.create_task(self._write_on())
        return answer

    async def _write_on(self) -> None:
        while self._waiting:
            count = _how_many([arrived.post for arrived, _ in self._waiting])
            batch, self._waiting = self._waiting[:count], self._waiting[count:]
            # A post whose client gave up before its turn is not stored: nobody was told of it.
            batch = [item for item in batch if not item[1].done()]
            await self._write(batch)
        self._work = None

    async def _write(self, batch: Sequence[_Waiting]) -> None:
        try:
            arrived = [item for item, _ in batch]
            outcomes = await self._store.write(record_all, arrived, time.time())
        except Exception as error:
            outcomes = [(None, error) for _ in batch]
        for (_, answer), (recorded, failure) in zip(batch, outcomes, strict=True):
            if answer.done():
                continue
            if failure is None:
                answer.set_result(recorded)
            else:
                answer.set_exception(failure)


def _how_many(posts: Sequence[Post]) -> int:
    """How many hold the writer no longer together than the largest part of one may."""
    sizes = accumulate(post.size for post in posts)
    return max(1, sum(size <= LARGEST_PART for size in sizes))
