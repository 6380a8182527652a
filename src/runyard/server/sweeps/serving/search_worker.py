"""The process in which one sweep's suggestions are made: started, asked, ended."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import sys
from collections.abc import Sequence
from typing import Any

log = logging.getLogger(__name__)

# An answer to a question with thousands of points is a long line.
_LONGEST_LINE = 64 << 20


class WorkerDied(Exception):
    """The process is gone; another can be started from the ledger."""


class SearchWorker:
    """One process. Questions are answered in their order, so one is asked at a time."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._asked = 0

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self, config: Any, seed: int) -> None:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "runyard.search.worker",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=_LONGEST_LINE,
            # Whatever else is in ours is not its business, the key least of all.
            env={name: value for name, value in os.environ.items() if "KEY" not in name},
            # A signal to our terminal is not for it; it ends when our pipe does.
            start_new_session=True,
        )
        await self.open(config, seed)

    async def open(self, config: Any, seed: int) -> None:
        """Begin the search: nothing has been tried. Said again, all that was added is forgotten."""
        await self._say({"open": {"config": config, "seed": seed}})

    async def add(self, results: Sequence[dict[str, Any]]) -> None:
        if results:
            await self._say({"add": list(results)})

    async def suggest(
        self, pending: Sequence[str], count: int, number: int
    ) -> list[tuple[float, ...]]:
        """As many points, or fewer; raises `WorkerDied` if nobody answers any more.

        `pending` are points as JSON.
        """
        points = ", ".join(pending)
        more = f'"pending": [{points}], "count": {count}, "number": {number}, '
        answer = await self._ask("suggest", more)
        return [tuple(map(float, point)) for point in answer.get("points", ())]

    async def chance(self) -> float | None:
        """That another setting beats the best one by a hundredth; None: that cannot be said."""
        chance: float | None = (await self._ask("chance")).get("chance")
        return chance

    async def _ask(self, word: str, more: str = "") -> dict[str, Any]:
        """The answer to a question, or why there is none. `more` is JSON."""
        self._asked += 1
        await self._send(f'{{"{word}": {{{more}"id": {self._asked}}}}}')
        while True:
            answer = await self._hear()
            if "error" in answer:
                log.error("a search could not go on as it should: %s", answer["error"][:500])
            if answer.get("id") == self._asked:
                return answer

    async def stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()

    async def _say(self, what: dict[str, Any]) -> None:
        # Beside the event loop: ten thousand results are a long text.
        await self._send(await asyncio.to_thread(json.dumps, what))

    async def _send(self, line: str) -> None:
        process = self._process
        if process is None or process.stdin is None:
            raise WorkerDied("it was never started")
        try:
            process.stdin.write(line.encode() + b"\n")
            await process.stdin.drain()
        except (ConnectionError, RuntimeError) as error:
            raise WorkerDied(str(error)) from error

    async def _hear(self) -> dict[str, Any]:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        line = await process.stdout.readline()
        if not line:
            raise WorkerDied("it ended")
        answer: dict[str, Any] = json.loads(line)
        return answer
