"""Files of whole histories, made when a client asks for one, and gone when it has it."""

from __future__ import annotations

import asyncio
import importlib.util
import time
from pathlib import Path

from runyard.server.history.exporting.parquet_file import write_history
from runyard.server.store.store import Store

_KEPT_SECONDS = 3600.0
_MOST_FILES = 100
# A client that scans a run asks for its rows right after their last step.
_SCAN_SECONDS = 60.0
_MOST_SCANS = 1_000


def can_write() -> bool:
    return importlib.util.find_spec("pyarrow") is not None


class HistoryExports:
    """The files in a folder of their own, by name; and who is about to read rows instead."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._making: dict[str, tuple[float, asyncio.Task[None]]] = {}
        # Each takes a page and a group of rows in memory.
        self._one_at_a_time = asyncio.Lock()
        self._scans: dict[tuple[object, ...], float] = {}

    async def make(self, store: Store, run: int, name: str) -> Path:
        """Write a run's history, unless that is done."""
        if name not in self._making:
            await self._drop_old()
            # A client that waits no longer asks again, and then waits for the same.
            work = asyncio.create_task(self._write(store, run, name))
            self._making[name] = time.time(), work
        try:
            await asyncio.shield(self._making[name][1])
        except Exception:
            await self.drop(name)
            raise
        return self._path(name)

    async def drop(self, name: str) -> None:
        self._making.pop(name, None)
        await asyncio.to_thread(self._path(name).unlink, missing_ok=True)

    def clear(self) -> None:
        """Remove what a dead server left."""
        for path in self._folder.glob("*"):
            path.unlink(missing_ok=True)

    def expect_scan(self, *who: object) -> None:
        """Somebody's next question for a run's files is one of a scan, which reads the rows."""
        now = time.time()
        if len(self._scans) >= _MOST_SCANS:
            self._scans = {
                known: moment
                for known, moment in self._scans.items()
                if moment > now - _SCAN_SECONDS
            }
        self._scans[who] = now

    def is_scan(self, *who: object) -> bool:
        """Whether this question was expected.

        A download must not take a file for a scan's: who asks for the last step does not always
        scan. So of two scans that begin at once, the second reads the file.
        """
        return self._scans.pop(who, 0.0) > time.time() - _SCAN_SECONDS

    async def _write(self, store: Store, run: int, name: str) -> None:
        async with self._one_at_a_time:
            await asyncio.to_thread(self._folder.mkdir, mode=0o700, exist_ok=True)
            await write_history(store, run, self._path(name))

    async def _drop_old(self) -> None:
        done = [(made, name) for name, (made, work) in self._making.items() if work.done()]
        excess = max(0, len(self._making) + 1 - _MOST_FILES)
        for number, (made, name) in enumerate(sorted(done)):
            if number < excess or made < time.time() - _KEPT_SECONDS:
                await self.drop(name)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.parquet"
