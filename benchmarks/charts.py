"""How long the server needs for one metric of many runs, and how much memory it has afterwards.

    python -m benchmarks.charts

Fills a state folder through the store (100 runs of 1,000 steps, 1,000 runs of 10,000), starts the
server on it, and asks over HTTP. Beside each time stands the floor: reading as many bytes from a
file in the same run.
"""

from __future__ import annotations

import functools
import json
import math
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from runyard.client.discover import connect, start_server, stop_server
from runyard.client.http import Connection
from runyard.home import Home, prepare, read_discovery
from runyard.server.history.history import HISTORY, put_rows
from runyard.server.history.joining import join_batches
from runyard.server.people.accounts import new_key
from runyard.server.runs import runs
from runyard.server.tracker import Tracker

METRICS = 10
COPIED = {
    "segments": "stream, start, stop",
    "series": "stream, key, level, start, kind, count, lines, data",
}
LIMITS_MS = {"few": 20.0, "many": 200.0}


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder) / "state")
        fill(home, {"few": (100, 1_000), "many": (1_000, 10_000)})
        start_server(home)
        try:
            return measure(home)
        finally:
            stop_server(home)


def fill(home: Home, projects: dict[str, tuple[int, int]]) -> None:
    prepare(home)
    tracker = Tracker(home)
    tracker.open(new_key())
    for project, (count, steps) in projects.items():
        lines = [
            json.dumps(
                {
                    "_step": step,
                    "_runtime": step / 7,
                    "_timestamp": 1.7e9 + step / 7,
                    **{f"m{m}": math.exp(-step / steps) + random.random() for m in range(METRICS)},
                }
            )
            for step in range(steps)
        ]

        def add(connection: sqlite3.Connection, name: str, number: int, first: int) -> int:
            """A run; the first has its history put in, the others a copy of it."""
            new = {"id": f"{name}{number}", "project": name, "command": ["x"]}
            row = runs.create_launched(connection, new, entity="me", user=1, now=time.time())
            key: int = row["key"]
            if not first:
                put_rows(connection, key, HISTORY, 0, lines)  # noqa: B023
                join_batches(connection, key, HISTORY)
            for table, columns in COPIED.items():
                connection.execute(
                    f"INSERT INTO {table} (run, {columns}) SELECT ?, {columns} FROM {table} "
                    "WHERE run = ? AND ? > 0",
                    (key, first, first),
                )
            return key

        first = 0
        for number in range(count):
            change = functools.partial(add, name=project, number=number, first=first)
            key = tracker._database.write(change).result()
            first = first or key
        print(f"filled {count} runs of {steps} steps", file=sys.stderr)
    tracker.close()


def measure(home: Home) -> int:
    discovery = read_discovery(home)
    assert discovery is not None
    connection = Connection(discovery.url, discovery.key)
    held = True
    for project, limit in LIMITS_MS.items():
        size = 0

        def ask(name: str = project) -> None:
            nonlocal size
            size = ask_for_curves(connection, name)

        took = best_of(ask)
        with tempfile.TemporaryFile() as file:
            file.write(bytes(size))
            floor = best_of(lambda: (file.seek(0), file.read())[0])
        held &= took <= limit
        print(
            f"{project:<5} {took:7.1f} ms  (limit {limit:g} ms)  {size / 1e6:.1f} MB, "
            f"{took / floor:.0f} x reading that from a file"
        )
    memory = rss_megabytes(connect(discovery).health()["pid"])
    held &= memory <= 150
    print(f"memory {memory:6.0f} MB  (limit 150 MB)")
    return 0 if held else 1


def ask_for_curves(connection: Connection, project: str) -> int:
    """How many bytes the curves of one metric of a project are."""
    asked = {"project": f"me/{project}", "metrics": ["m3"], "points": 1000}
    return len(connection.post_for_bytes("/api/curves", asked))


def best_of(work: Callable[[], object], times: int = 7) -> float:
    """The median in milliseconds, after one to warm up."""
    work()
    measured = []
    for _ in range(times):
        begin = time.perf_counter()
        work()
        measured.append(time.perf_counter() - begin)
    return statistics.median(measured) * 1e3


def rss_megabytes(pid: int) -> float:
    shown = subprocess.run(
        ["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=True
    )
    return int(shown.stdout) / 1024


if __name__ == "__main__":
    sys.exit(main())
