"""Writes numbered lines for ever; says each number only when its line is on disk.

python -m tests.server.numbered_writer DATABASE RUN FIRST
"""

from __future__ import annotations

import sys
from collections import deque
from concurrent.futures import Future
from pathlib import Path

from runyard.server.processes.console_lines import put_lines
from runyard.server.store.database import Database

_IN_FLIGHT = 20


def main() -> None:
    path, run, number = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    database = Database(path)
    database.open()
    waiting: deque[tuple[int, Future[None]]] = deque()
    while True:
        text = f"line {number} " + "x" * (number % 700)
        waiting.append((number, _put(database, run, number, text)))
        number += 1
        while len(waiting) > _IN_FLIGHT or (waiting and waiting[0][1].done()):
            written, future = waiting.popleft()
            future.result()
            print(written, flush=True)


def _put(database: Database, run: int, number: int, text: str) -> Future[None]:
    return database.write(lambda c: put_lines(c, run, "history", number, [text]))


if __name__ == "__main__":
    main()
