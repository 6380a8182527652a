"""The server, with a note of how long each request took from its header to its answer's last byte.

    python -m benchmarks.timed_server STATE_FOLDER NOTES

Writes a line of JSON for each request into NOTES when it ends: when it came, how many seconds it
took, the answer's status, method and path. Everything else is the server as commands start it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from starlette.applications import Starlette
from starlette.types import Message, Receive, Scope, Send

from runyard.home import Home, prepare
from runyard.locks import FolderLock
from runyard.server import serve as serving
from runyard.server.app import create_app
from runyard.server.tracker import Tracker

Note = tuple[float, float, int, str, str]


class Timed:
    """An application whose requests are noted."""

    def __init__(self, app: Starlette, notes: list[Note]) -> None:
        self._app = app
        self.state = app.state  # The server's own loop looks at it.
        self._notes = notes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 0

        async def watch(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        at, begin = time.time(), time.perf_counter()
        try:
            await self._app(scope, receive, watch)
        finally:
            took = time.perf_counter() - begin
            self._notes.append((at, took, status, scope["method"], scope["path"]))


def main() -> None:
    home, file = Home(Path(sys.argv[1])), Path(sys.argv[2])
    notes: list[Note] = []

    def create_timed(
        tracker: Tracker, stop: Callable[[], None], is_stopping: Callable[[], bool]
    ) -> Timed:
        return Timed(create_app(tracker, stop, is_stopping), notes)

    serving.create_app = create_timed  # type: ignore[assignment,attr-defined]
    os.umask(0o077)
    prepare(home)
    with FolderLock(home.server_lock) as lock:
        assert lock.acquire(), f"{home.path} has a server already"
        serving.serve(home, None, None, lambda _: print("ready", flush=True))
    with file.open("w") as lines:
        lines.writelines(json.dumps(note) + "\n" for note in notes)


if __name__ == "__main__":
    main()
