"""Lists of a server with 100,000 runs: what each takes, and what others wait meanwhile.

    python -m benchmarks.long_lists [--runs 100000] [--keep FOLDER] [--only WORD]

The state is written straight into the database, with one project of so many runs and one of 1,000.
Each question is asked once of a server that has just started. Beside its seconds stand the server's
CPU and peak memory, the size of the answer, and the longest that another caller waited meanwhile.
A folder that is kept is used again.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import gc
import json
import random
import sqlite3
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPResponse
from pathlib import Path

from benchmarks.many_runs import cpu_seconds, say, serving
from runyard.client.http import Connection
from runyard.home import Discovery, Home
from runyard.server.history.history import HISTORY, put_rows
from runyard.server.store.database import Database

LARGE, SMALL = "birds", "few"
SMALL_RUNS, MATCHES = 1_000, 10_000
STEPS = 3
WORDS = """query($p: String!, $e: String!, $f: JSONString, $c: String) {
  project(name: $p, entityName: $e) { runCount(filters: $f) runs(filters: $f, after: $c, first: %d)
  { edges { node { id name state config summaryMetrics } cursor }
    pageInfo { endCursor hasNextPage } } } }"""
NEW_RUN = 'mutation { upsertBucket(input: {name: "%s", modelName: "%s"}) { inserted } }'


@dataclass
class Caller:
    """Asks the server, as its owner."""

    discovery: Discovery
    entity: str

    def get(self, path: str) -> int:
        """The size of an answer, which is read piece by piece."""
        size = 0
        with self._open(path, None) as response:
            while piece := response.read(1 << 20):
                size += len(piece)
        return size

    def ask(self, words: str, **variables: object) -> dict[str, object]:
        body = json.dumps({"query": words, "variables": variables}).encode()
        with self._open("/graphql", body) as response:
            return json.load(response)["data"]  # type: ignore[no-any-return]

    @contextlib.contextmanager
    def _open(self, path: str, body: bytes | None) -> Iterator[HTTPResponse]:
        token = base64.b64encode(f"api:{self.discovery.key}".encode()).decode()
        headers = {"Authorization": f"Basic {token}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.discovery.url + path, body, headers)
        with urllib.request.urlopen(request, timeout=600) as response:
            yield response


def project(name: str, rest: str) -> Callable[[Caller], int]:
    return lambda caller: caller.get(f"/api/projects/{caller.entity}/{name}/{rest}")


def walk(caller: Caller, size: int) -> int:
    """Page by page through the runs that pass a filter; as `wandb.Api().runs` does."""
    after, runs = None, 0
    condition = json.dumps({"config.lr": {"$lt": MATCHES}})
    while True:
        found = caller.ask(WORDS % size, p=LARGE, e=caller.entity, f=condition, c=after)["project"][
            "runs"
        ]  # type: ignore[index]
        runs += len(found["edges"])
        after = found["pageInfo"]["endCursor"]
        if not found["pageInfo"]["hasNextPage"]:
            break
    assert runs == MATCHES, runs
    return runs


def make_runs(caller: Caller) -> int:
    for number in range(100):
        caller.ask(NEW_RUN % (f"new{number}", LARGE))
    return 100


QUESTIONS: dict[str, Callable[[Caller], int]] = {
    "/api/runs, all": lambda caller: caller.get("/api/runs"),
    f"/api/runs, {SMALL_RUNS}": lambda caller: caller.get(f"/api/runs?project={SMALL}"),
    "filtered walk, pages of 50": lambda caller: walk(caller, 50),
    "filtered walk, pages of 1000": lambda caller: walk(caller, 1_000),
    "keys, cold": project(LARGE, "keys"),
    "page's list": project(LARGE, "runs"),
    "page's list, first slice": project(LARGE, "runs?limit=500"),
    "page's list, two columns": project(LARGE, "runs?config=lr&summary=acc"),
    f"page's list, {SMALL_RUNS}": project(SMALL, "runs"),
    "overview": lambda caller: caller.get("/api/projects"),
    "100 new runs": make_runs,
}


def fill(db: sqlite3.Connection, name: str, count: int) -> None:
    """Runs with 20 config keys, what a client tells of its surroundings, and 16 metrics."""
    key, user = db.execute(
        "SELECT projects.key, runs.user FROM projects JOIN runs ON runs.project = projects.key "
        "WHERE projects.name = ?",
        (name,),
    ).fetchone()
    internals = {"value": {"e": {"w": {f"key{number}": "v" * 20 for number in range(40)}}}}
    chance, now = random.Random(count), time.time()
    states = ("finished", "finished", "finished", "failed", "crashed")
    for number in range(count):
        config = {f"k{place}": {"value": chance.random()} for place in range(20)}
        config |= {"lr": {"value": number}, "_wandb": internals}  # type: ignore[dict-item]
        summary = {f"m{place}": chance.random() for place in range(15)} | {"acc": chance.random()}
        at = now - (count - number) * 60
        run = db.execute(
            "INSERT INTO runs (id, project, user, name, state, seen_client, config, summary, host, "
            "created_at, started_at, heartbeat_at, ended_at) "
            "VALUES (?, ?, ?, ?, ?, 1, ?, ?, 'node1', ?, ?, ?, ?)",
            (
                *(f"{name}{number}", key, user, f"quiet-lake-{number}", chance.choice(states)),
                *(json.dumps(config), json.dumps(summary), at, at, at + 50, at + 50),
            ),
        ).lastrowid
        assert run is not None
        rows = [json.dumps({"_step": step, "acc": step / 7}) for step in range(STEPS)]
        put_rows(db, run, HISTORY, 0, rows)


def build(folder: Path, runs: int) -> None:
    home = Home(folder / "state")
    with serving(home, folder / "notes") as discovery:
        connection = Connection(discovery.url, discovery.key)
        for name in (LARGE, SMALL):
            words = (
                'mutation { upsertBucket(input: {name: "first", modelName: "%s"}) { inserted } }'
            )
            connection.post("/graphql", {"query": words % name})
    database = Database(home.database)
    database.open()
    for name, count in ((LARGE, runs), (SMALL, SMALL_RUNS)):
        database.write(lambda db, name=name, count=count: fill(db, name, count)).result()  # type: ignore[misc]
    database.close()


@contextlib.contextmanager
def others(discovery: Discovery) -> Iterator[list[float]]:
    """What a second caller waits for each of its short answers, for as long as this lasts."""
    connection = Connection(discovery.url, discovery.key)
    waits, ended = [0.0], threading.Event()

    def ask() -> None:
        while not ended.wait(0.02):
            begin = time.perf_counter()
            connection.get("/api/runs", limit=1, project=SMALL)
            waits.append(time.perf_counter() - begin)

    connection.get("/api/runs", limit=1, project=SMALL)
    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield waits
    finally:
        ended.set()
        thread.join()


def peak_megabytes(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def measure(folder: Path, name: str) -> None:
    with serving(Home(folder / "state"), folder / "notes") as discovery:
        answer = Connection(discovery.url, discovery.key).get("/api/runs", limit=1)
        caller = Caller(discovery, answer[0]["entity"])
        gc.collect()
        with others(discovery) as waits:
            begin, cpu = time.perf_counter(), cpu_seconds(discovery.pid)
            size = QUESTIONS[name](caller)
            took, cpu = time.perf_counter() - begin, cpu_seconds(discovery.pid) - cpu
        peak = peak_megabytes(discovery.pid)
    print(f"{name:30} {took:8.2f} {cpu:8.2f} {peak:8.0f} {size:12d} {max(waits):8.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--keep", type=Path, help="a folder for the state, new or from before")
    parser.add_argument("--only", default="", help="questions with this in their name")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as passing:
        folder: Path = args.keep or Path(passing)
        if not (folder / "state").exists():
            folder.mkdir(exist_ok=True)
            begin = time.perf_counter()
            build(folder, args.runs)
            say(f"{args.runs} runs written in {time.perf_counter() - begin:.0f} s")
        print(f"{'':30} {'s':>8} {'CPU s':>8} {'MB':>8} {'size':>12} {'others s':>8}")
        for name in QUESTIONS:
            if args.only in name:
                measure(folder, name)


if __name__ == "__main__":
    main()
