"""A server with a lab's 100,000 runs in 50 projects and 10^9 points, beside one with 1,000 runs.

    python -m benchmarks.lab_size [--runs 100000] [--points 10000] [--keep FOLDER]

Both have 50 projects; the one that is asked about has 2,000 of the large server's runs and 951 of
the small one's. Each question is asked in turns of both, and the medians are compared. What may
grow is at most twice as slow. Beside them: how long the server takes to start, and its memory.
A folder that is kept is used again; it takes about 10 GB.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from sqlite3 import Connection as Writer
from typing import Any

from benchmarks.long_lists import Caller, peak_megabytes
from runyard.client.discover import start_server, stop_server
from runyard.client.http import Connection
from runyard.home import Home, prepare, read_discovery
from runyard.server.history.history import HISTORY, put_rows
from runyard.server.history.joining import join_batches
from runyard.server.people.accounts import new_key
from runyard.server.runs import runs
from runyard.server.sweeps.serving.creation import new_sweep, read_file
from runyard.server.tracker import Tracker

PROJECTS, SMALL_RUNS, METRICS = 50, 1_000, 20
TRIALS = 100  # of the sweep whose page is opened
TURNS = 7
LIMIT, LIMIT_START, LIMIT_MEGABYTES = 2.0, 2.0, 500.0
ASKED = "project0"
PAGE = """query($e: String!, $p: String!, $f: JSONString, $o: String) {
  project(name: $p, entityName: $e) { runCount(filters: $f) runs(filters: $f, order: $o, first: 50)
  { edges { node { id name displayName state config summaryMetrics } cursor } } } }"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--points", type=int, default=10_000, help="of each run")
    parser.add_argument("--keep", type=Path, help="a folder for both states, new or from before")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as passing:
        folder: Path = args.keep or Path(passing)
        homes = {name: Home(folder / name) for name in ("small", "large")}
        if not homes["large"].path.exists():
            folder.mkdir(exist_ok=True)
            even = [args.runs // PROJECTS] * PROJECTS
            fill(homes["small"], [SMALL_RUNS - PROJECTS + 1, *[1] * (PROJECTS - 1)], args.points)
            fill(homes["large"], even, args.points)
        return measure(homes)


def fill(home: Home, sizes: list[int], points: int) -> None:
    """Projects of so many runs; each run has the same rows, copied within the database."""
    prepare(home)
    tracker = Tracker(home)
    tracker.open(new_key())
    begin = time.perf_counter()
    for number, size in enumerate(sizes):
        tracker._database.write(
            lambda db, number=number, size=size: add_project(db, number, size, points)  # type: ignore[misc]
        ).result()
    tracker.close()
    took = time.perf_counter() - begin
    print(f"{home.path.name}: {sum(sizes)} runs written in {took:.0f} s", file=sys.stderr)


def add_project(db: Writer, number: int, size: int, points: int) -> None:
    project, now, chance = f"project{number}", time.time(), random.Random(number)
    sweep = None
    if project == ASKED:
        file = {"method": "random", "metric": {"name": "m0"},
                "parameters": {"lr": {"min": 0.0, "max": 1.0}}}  # fmt: skip
        read = read_file(file)
        sweep_row = new_sweep(
            db, read, entity="me", project=project, user=1, name="lr", seed=1, prior=(), now=now
        )
        sweep = sweep_row["id"]
    template = 0
    for place in range(size):
        new = {"id": f"r{number}-{place}", "project": project, "command": ["python", "train.py"]}
        key = runs.create_launched(db, new, entity="me", user=1, now=now + place)["key"]
        config = {f"k{index}": {"value": chance.random()} for index in range(20)}
        config["lr"] = {"value": place}
        summary = {f"m{index}": chance.random() for index in range(METRICS)}
        db.execute(
            "UPDATE runs SET config = ?, summary = ?, state = 'finished', ended_at = ?, sweep = ? "
            "WHERE key = ?",
            (*(json.dumps(part) for part in (config, summary)), now + place + 60,
             sweep if place < TRIALS else None, key),
        )  # fmt: skip
        if sweep and place < TRIALS:
            add_trial(db, sweep_row["key"], place + 1, key, str(new["id"]), now)
        if not template:
            template = key
            put_rows(db, key, HISTORY, 0, curves(points // METRICS))
            join_batches(db, key, HISTORY)
        else:
            copy_rows(db, template, key)


def curves(steps: int) -> list[str]:
    return [
        json.dumps(
            {"_step": step}
            | {f"m{index}": math.exp(-step / 99) + random.random() for index in range(METRICS)}
        )
        for step in range(steps)
    ]


def copy_rows(db: Writer, template: int, key: int) -> None:
    for table in ("batches", "segments", "series"):
        names = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
        columns = ", ".join(f'"{name}"' for name in names if name != "run")
        db.execute(
            f"INSERT INTO {table} (run, {columns}) SELECT ?, {columns} FROM {table} WHERE run = ?",
            (key, template),
        )


def add_trial(db: Writer, sweep: int, number: int, run: int, name: str, now: float) -> None:
    values = {
        "sweep": sweep, "number": number, "run": run, "id": name, "name": name, "setting": number,
        "settings": json.dumps({"lr": number}), "point": json.dumps([number / TRIALS]),
        "state": "finished", "attempts": 1, "measured": json.dumps({"m0": 1 / number}),
        "score": 1 / number, "ended": number, "exit_code": 0, "created_at": now,
    }  # fmt: skip
    marks = ", ".join("?" * len(values))
    db.execute(f"INSERT INTO trials ({', '.join(values)}) VALUES ({marks})", (*values.values(),))


def questions(home: Home) -> dict[str, Callable[[], object]]:
    """As the page asks; as `wandb.Api().runs` does; and a command, with its whole process."""
    discovery = read_discovery(home)
    assert discovery is not None
    connection = Connection(discovery.url, discovery.key)
    sweep: dict[str, Any] = connection.get("/api/sweeps")[0]
    caller = Caller(discovery, sweep["entity"])
    runs_of_project = f"/api/projects/{sweep['entity']}/{ASKED}/runs"

    def filtered(conditions: dict[str, Any], order: str = "-created_at") -> object:
        words = json.dumps(conditions)
        return caller.ask(PAGE, e=sweep["entity"], p=ASKED, f=words, o=order)["project"]

    command = [sys.executable, "-m", "runyard", "runs"]
    return {
        "first page: projects": lambda: caller.get("/api/projects"),
        "first page: a project's newest 500": lambda: caller.get(runs_of_project + "?limit=500"),
        "search by name": lambda: filtered({"display_name": {"$regex": "lake"}}),
        "filter on config": lambda: filtered({"config.lr": {"$lt": 500}}),
        "filter and order by a metric": lambda: filtered(
            {"config.lr": {"$lt": 500}}, "-summary_metrics.m1"
        ),
        "a sweep's page": lambda: (
            caller.get(f"/api/sweeps/{sweep['key']}"),
            caller.get(f"/api/sweeps/{sweep['key']}/columns"),
        ),
        "runyard runs": lambda: subprocess.run(
            command, env={**os.environ, "RUNYARD_HOME": str(home.path)}, check=True,
            capture_output=True,
        ),
    }  # fmt: skip


def measure(homes: dict[str, Home]) -> int:
    started = dict[str, float]()
    for name, home in homes.items():
        begin = time.perf_counter()
        start_server(home)
        started[name] = time.perf_counter() - begin
    try:
        asked = {name: questions(home) for name, home in homes.items()}
        print(f"{'':36} {'1,000 runs':>12} {'many runs':>12}")
        ratios = []
        for question in asked["small"]:
            times: dict[str, list[float]] = {name: [] for name in homes}
            for _ in range(TURNS):
                for name in homes:
                    begin = time.perf_counter()
                    asked[name][question]()
                    times[name].append(time.perf_counter() - begin)
            small, large = (statistics.median(times[name]) * 1e3 for name in homes)
            ratios.append(large / small)
            first = times["large"][0] * 1e3
            print(
                f"{question:36} {small:9.1f} ms {large:9.1f} ms  {large / small:5.2f} x"
                f"  (first {first:.1f} ms)",
                flush=True,
            )
        discoveries = {name: read_discovery(home) for name, home in homes.items()}
        memory = {name: peak_megabytes(where.pid) for name, where in discoveries.items() if where}
    finally:
        for home in homes.values():
            stop_server(home)
    print(f"{'start':36} {started['small']:10.2f} s {started['large']:10.2f} s")
    print(f"{'memory at its peak':36} {memory['small']:9.0f} MB {memory['large']:9.0f} MB")
    is_good = max(ratios) <= LIMIT and started["large"] <= LIMIT_START
    return 0 if is_good and memory["large"] <= LIMIT_MEGABYTES else 1


if __name__ == "__main__":
    sys.exit(main())
