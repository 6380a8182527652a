"""`runyard server backup` while 50 runs log ten times a second.

    python -m benchmarks.backup [--megabytes 500] [--runs 50] [--folder FOLDER]

The state folder holds so many megabytes of history when it begins. Beside the backup stands a
plain copy of the same bytes, made while the same runs log: a backup may take three times as long.
Posts may take a second meanwhile (99th percentile), and the copy must be whole. With `--folder` the
state folder is there: on a network file system, say.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.wire import PROJECT, WireRun, connect, fill, row
from runyard.client import discover
from runyard.home import Home, read_discovery

TIMES, LIMIT_P99 = 3.0, 1.0
_HERTZ = 10


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--folder", type=Path, help="for the state folder and the copy")
    args = parser.parse_args()
    # A file that is still open when it is removed leaves a hidden one behind on FUSE and NFS.
    with tempfile.TemporaryDirectory(dir=args.folder, ignore_cleanup_errors=True) as folder:
        home = Home(Path(folder) / "state")
        fill_home(home, args.megabytes)
        discover.start_server(home)
        try:
            return measure(home, Path(folder), args.runs)
        finally:
            discover.stop_server(home)


def measure(home: Home, folder: Path, runs: int) -> int:
    discovery = read_discovery(home)
    assert discovery is not None
    api = discover.connect(discovery)
    with logging(home, runs) as posts:
        time.sleep(3)
        quiet = len(posts)
        sizes: list[int] = []
        took = timed(lambda: sizes.append(api.backup(str(folder / "copy"), lambda *_: None)))
        meanwhile = posts[quiet:]
        plain = timed(lambda: copy_plainly(folder / "copy", folder / "plain"))
    p99, p99_before = (percentile_99(waits) for waits in (meanwhile, posts[:quiet]))
    print(f"backup of {sizes[0] / 1e6:.0f} MB: {took:.2f} s; a plain copy of it: {plain:.2f} s, "
          f"{took / plain:.1f} x (limit {TIMES:g} x)")  # fmt: skip
    print(f"{len(meanwhile)} posts meanwhile: p99 {p99 * 1e3:.0f} ms, the longest "
          f"{max(meanwhile) * 1e3:.0f} ms (limit for p99 {LIMIT_P99 * 1e3:.0f} ms); "
          f"{quiet} in the 3 s before: p99 {p99_before * 1e3:.0f} ms")  # fmt: skip
    wrong = faults_of(folder / "copy", runs)
    print("\n".join(wrong) or "the copy opens and is whole")
    return 0 if took <= TIMES * plain and p99 <= LIMIT_P99 and not wrong else 1


def percentile_99(waits: list[float]) -> float:
    return statistics.quantiles(waits, n=100)[98]


def fill_home(home: Home, megabytes: int) -> None:
    """Runs of 4 MB or so each."""
    discover.start_server(home)
    connection = connect(home)
    keys = []
    for number in range(max(1, megabytes // 4)):
        WireRun(connection, f"filled{number}").start()
        keys.append(connection.get("/api/run", name=f"{PROJECT}/filled{number}")["key"])
    discover.stop_server(home)
    fill(home, keys, 10_000, 30)


@contextlib.contextmanager
def logging(home: Home, runs: int) -> Iterator[list[float]]:
    """Runs that log; how long each post took."""
    waits: list[float] = []
    ended = threading.Event()

    def log(number: int) -> None:
        run, step = WireRun(connect(home), f"run{number}"), 0
        run.start()
        due = time.perf_counter()
        while not ended.is_set():
            due = max(due + 1 / _HERTZ, time.perf_counter() - 1)
            ended.wait(max(0.0, due - time.perf_counter()))
            begin = time.perf_counter()
            run.log(step, [row(step, 10)])
            waits.append(time.perf_counter() - begin)
            step += 1

    threads = [threading.Thread(target=log, args=(number,)) for number in range(runs)]
    for thread in threads:
        thread.start()
    try:
        yield waits
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def copy_plainly(source: Path, target: Path) -> None:
    shutil.copytree(source, target)
    with (target / "runyard.db").open("rb+") as file:
        os.fsync(file.fileno())


def timed(action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def faults_of(copy: Path, runs: int) -> list[str]:
    connection = sqlite3.connect(copy / "runyard.db")
    checked = connection.execute("PRAGMA quick_check").fetchone()[0]
    connection.close()
    wrong = [] if checked == "ok" else [checked]
    home = Home(copy)
    discover.start_server(home)
    try:
        asked = connect(home)
        for number in range(runs):
            run = asked.get("/api/run", name=f"{PROJECT}/run{number}")
            lines = asked.get_bytes(f"/api/runs/{run['key']}/rows").splitlines()
            steps = [json.loads(line)["_step"] for line in lines]
            if steps != list(range(len(steps))) or not steps:
                wrong.append(f"run{number}: {len(steps)} rows, or others")
    finally:
        discover.stop_server(home)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
