"""Lists of runs among many: a filter on a config key, ordered by a summary metric, a page of 50.

    python -m benchmarks.run_lists

Against reading and parsing every run's JSON for each question, which is what it replaces.
"""

from __future__ import annotations

import json
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from runyard.server.listing.field_memory import FieldMemory
from runyard.server.listing.filters import read_filter
from runyard.server.listing.orders import read_order
from runyard.server.listing.run_lists import Filter, RunLists
from runyard.server.store.database import Database

RUNS, TIMES = 10_000, 10
TEXT = '{"config.lr": {"$gt": 0.5}}'
CHOSEN = Filter(TEXT, read_filter(TEXT))
ORDER = read_order("-summary_metrics.acc")


def fill(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO users (key, name, created_at) VALUES (1, 'ada', 0)")
    connection.execute(
        "INSERT INTO projects (key, entity, name, created_at) VALUES (1, 'ada', 'birds', 0)"
    )
    internals = {"value": {"e": {"w": {f"key{number}": "v" * 20 for number in range(40)}}}}
    for number in range(RUNS):
        config = {f"k{key}": {"value": random.random()} for key in range(20)}
        config |= {"lr": {"value": number / RUNS}, "_wandb": internals}  # type: ignore[dict-item]
        summary = {f"m{key}": random.random() for key in range(15)} | {"acc": random.random()}
        connection.execute(
            "INSERT INTO runs (id, project, user, name, state, config, summary, created_at) "
            "VALUES (?, 1, 1, ?, 'finished', ?, ?, ?)",
            (f"r{number}", f"n{number}", json.dumps(config), json.dumps(summary), number),
        )


def page(connection: sqlite3.Connection, lists: RunLists) -> None:
    found = lists.read_page(connection, 1, CHOSEN, ORDER, None, 50)
    assert len(found.runs) == 50


def read_all(connection: sqlite3.Connection) -> None:
    """Everything, every time."""
    found = []
    for row in connection.execute("SELECT key, config, summary FROM runs WHERE project = 1"):
        if json.loads(row["config"])["lr"]["value"] > 0.5:
            found.append((json.loads(row["summary"])["acc"], row["key"]))
    assert len(sorted(found, reverse=True)[:50]) == 50


def measure(database: Database, work: Callable[[sqlite3.Connection], None]) -> float:
    """CPU milliseconds, the best of several."""
    best = float("inf")
    for _ in range(TIMES):
        begin = time.process_time()
        database.plan(work).result()
        best = min(best, time.process_time() - begin)
    return best * 1e3


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        database = Database(Path(folder) / "runyard.db")
        database.open()
        database.write(fill).result()
        changes = database.changes
        lists = RunLists(changes, FieldMemory())
        print(f"{RUNS} runs, a page of 50; CPU ms, best of {TIMES}")
        anew = measure(database, read_all)
        first = measure(
            database, lambda connection: page(connection, RunLists(changes, FieldMemory()))
        )
        later = measure(database, lambda connection: page(connection, lists))
        print(f"  every JSON text read anew  {anew:8.1f}")
        print(f"  runyard, first question    {first:8.1f}")
        print(f"  runyard, next pages        {later:8.1f}")
        database.close()


if __name__ == "__main__":
    main()
