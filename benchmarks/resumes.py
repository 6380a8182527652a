"""Twenty long trials that go on at once from their checkpoints: does anybody else wait?

    python -m benchmarks.resumes [--trials 20] [--rows 300000] [--keys 20]

Each trial has 300,000 rows of 20 metrics, was cut off, and goes back to a checkpoint shortly before
its end, as preempted trials do that come back together. Meanwhile another program logs ten times a
second: none of its posts may wait longer than a second. Beside it stands what posts take when
nobody goes back.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.many_runs import asking_from_outside
from benchmarks.wire import SINCE, connect, fill
from runyard.client.discover import start_server, stop_server
from runyard.client.http import Connection
from runyard.home import Home, read_discovery

LIMIT = 1.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--keys", type=int, default=20)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder) / "state")
        start_server(home)
        try:
            agent, held = cut_off(connect(home), args.trials)
            stop_server(home)
            fill(home, [trial["run"]["key"] for trial in held], args.rows, args.keys)
            start_server(home)
            return measure(home, agent, held, args.rows)
        finally:
            stop_server(home)


def cut_off(connection: Connection, trials: int) -> tuple[int, list[Any]]:
    """Trials in their second attempt, and their agent."""
    config = {
        "method": "grid",
        "program": "train.py",
        "parameters": {"lr": {"values": list(range(trials))}},
    }
    sweep = connection.post("/api/sweeps", {"config": config, "project": "birds"})
    given = {"token": "agent", "host": "node1", "pid": 7, "slots": trials}
    agent: int = connection.post(f"/api/sweeps/{sweep['key']}/agents", given)["agent"]

    def claim(word: str) -> list[Any]:
        path = f"/api/agents/{agent}/claim"
        return [
            connection.post(path, {"token": f"{word}{number}", "wait": 0})
            for number in range(trials)
        ]

    for held in claim("first"):
        ended = {"exit_code": -9, "cause": "node", "ended_at": time.time()}
        place = {"trial": held["trial"]["number"], "attempt": held["attempt"]}
        connection.post(f"/api/agents/{agent}/ends", {**place, **ended})
    return agent, claim("second")


def measure(home: Home, agent: int, held: list[Any], rows: int) -> int:
    discovery = read_discovery(home)
    assert discovery is not None
    with asking_from_outside(discovery) as quiet:
        time.sleep(5)
    saved_at = SINCE + (rows - 500) / 8
    ready = threading.Barrier(len(held))

    def go_back(trial: Any) -> float:
        connection = connect(home)
        place = {"trial": trial["trial"]["number"], "attempt": trial["attempt"]}
        ready.wait()
        begin = time.perf_counter()
        connection.post(f"/api/agents/{agent}/rewind", {**place, "saved_at": saved_at})
        return time.perf_counter() - begin

    with asking_from_outside(discovery) as waits, ThreadPoolExecutor(len(held)) as threads:
        took = list(threads.map(go_back, held))
    connection = connect(home)
    wrong = []
    for trial in held:
        detail = connection.get("/api/run", name=trial["run"]["id"])
        if detail["steps"] != rows - 499:
            wrong.append(f"{trial['run']['id']} has {detail['steps']} rows")
    print(f"{len(held)} trials went back in {min(took):.1f} to {max(took):.1f} s")
    for when, posts in (("before", quiet), ("meanwhile", waits)):
        print(f"{len(posts)} posts {when}, the longest {max(posts) * 1e3:.0f} ms")
    print(f"limit {LIMIT * 1e3:.0f} ms")
    writer = connection.get("/api/health")["writer"]
    print(json.dumps({kind: round(times["longest_cpu"], 4) for kind, times in writer.items()}))
    print("\n".join(wrong) or "every run has the rows up to its checkpoint")
    return 0 if max(waits) <= LIMIT and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
