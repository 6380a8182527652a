"""How long one change holds the writer, at 100,000 rows a run: posts, joins, rewinds, forks, syncs.

    python -m benchmarks.writer [--rows 100000] [--keys 20]

All changes of the server go through one thread, so one that takes long makes every program that
logs wait. The server measures each kind of change; here each is provoked on a long run, over HTTP,
and none may compute longer than 50 ms. Computing, and not the wall clock: other work on the
machine does not count. Beside it stands the time of a commit, which is the disk's.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.wire import PROJECT, WireRun, connect, row
from runyard.client import discover
from runyard.home import Home, read_discovery

LIMIT = 0.050
_ROWS_A_POST = 1_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--keys", type=int, default=20)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder) / "state")
        discover.start_server(home)
        try:
            provoke(home, args.rows, args.keys)
            return report(home)
        finally:
            discover.stop_server(home)


def provoke(home: Home, rows: int, keys: int) -> None:
    discovery = read_discovery(home)
    assert discovery is not None
    connection, api = connect(home), discover.connect(discovery)
    run = WireRun(connection, "long")
    bucket = run.start()
    told("began", lambda: None)

    def log_all() -> None:
        for start in range(0, rows, _ROWS_A_POST):
            run.log(start, [row(step, keys) for step in range(start, start + _ROWS_A_POST)])

    def wait_for_joins() -> None:
        """Some more rows, so that the joiner looks; then until it has come to them."""
        while True:
            before = joins(home)
            time.sleep(5)
            if joins(home) == before:
                return

    told("logged", log_all)
    told("joined", wait_for_joins)
    last = [row(step, keys) for step in range(rows - 200, rows)]
    told("sent other rows again", lambda: run.log(rows - 200, last))
    told("sent rows again", lambda: run.log(rows - 200, last))
    child = WireRun(connection, "child", 1.8e9)
    branch = {"branch_point": {"run_id": run.name, "step": rows - 100}}
    told("forked", lambda: child.start(branch))
    told("rewound by half", lambda: run.rewind(rows // 2))
    sync = WireRun(connection, "child", 1.75e9)
    sync.start({"t": {"3": [42]}})
    middle = [row(step, keys, 1.75e9) for step in range(rows // 2, rows // 2 + 500)]
    told("synced into the middle", lambda: sync.log(0, middle))
    run.log(rows // 2 + 1, [row(rows, keys)], complete=True, exitcode=0)
    again = WireRun(connection, "long", 1.9e9)
    told("begun anew", again.start)
    for name in ("long", "child"):
        told(f"deleted {name}", lambda name=name: api.delete_run(api.run(f"{PROJECT}/{name}")))
    assert bucket["id"]


def told(what: str, action: object) -> None:
    begin = time.perf_counter()
    assert callable(action)
    action()
    print(f"{what} in {time.perf_counter() - begin:.2f} s", file=sys.stderr)


def joins(home: Home) -> int:
    found = connect(home).get("/api/health")["writer"].get("joining.join", {"count": 0})
    count: int = found["count"]
    return count


def report(home: Home) -> int:
    writer = connect(home).get("/api/health")["writer"]
    print("kind of change                  count   most CPU    longest   longest wait")
    for kind, times in writer.items():
        print(
            f"{kind:30} {times['count']:6} {times['longest_cpu'] * 1e3:7.1f} ms "
            f"{times['longest'] * 1e3:7.1f} ms {times['longest_wait'] * 1e3:11.1f} ms"
        )
    changes = {kind: times for kind, times in writer.items() if kind != "commit"}
    slowest = max(changes, key=lambda kind: changes[kind]["longest_cpu"])
    most = changes[slowest]["longest_cpu"]
    print(f"most CPU of one change: {most * 1e3:.0f} ms ({slowest}); limit {LIMIT * 1e3:.0f} ms")
    return 0 if most <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
