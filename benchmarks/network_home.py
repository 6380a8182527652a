"""Charts and rows on a state folder in a network home, beside the same on this machine's disk.

    python -m benchmarks.network_home [--trips 0 1] [--runs 100] [--seconds 20]

The network home is a folder over sshfs, with a server on this machine to which each request takes
so many milliseconds more. Two servers run side by side, one on each, and are asked in turns: the
curves of `benchmarks.charts`, filled on the disk beneath, and the rows of `benchmarks.live_load`.
Beside them stands what the file system itself takes for the least a commit does: to write some
pages and have them on disk.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import charts, live_load
from benchmarks.many_runs import cpu_seconds
from benchmarks.staging import can_mount, mounted
from runyard.client.discover import start_server, stop_server
from runyard.client.http import Connection
from runyard.home import Home, read_discovery

LIMIT = 1.5
ROUNDS, ROUNDS_OF_ROWS = 9, 2
# Of a commit that a few posts share.
COMMIT = bytes(10 * 4096)

Figures = dict[str, float]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trips", type=float, nargs="+", default=[0, 1], metavar="MS")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seconds", type=int, default=20)
    args = parser.parse_args()
    if not can_mount():
        raise SystemExit("needs sshfs, cc and an sftp-server (openssh-sftp-server)")
    held = True
    with tempfile.TemporaryDirectory() as folder:
        disk, home = Path(folder) / "disk", Path(folder) / "home"
        for place in (disk / "near", home):
            place.mkdir(parents=True)
        charts.fill(Home(disk / "near" / "charts"), {"few": (100, 1_000), "many": (1_000, 10_000)})
        shutil.copytree(disk / "near", disk / "far")
        for trip in args.trips:
            with mounted(disk / "far", home, trip):
                near, far = in_turns(disk / "near", home, args.runs, args.seconds)
            print(f"{trip:g} ms a request more:")
            for name, value in near.items():
                ratio = far[name] / value
                held &= ratio <= LIMIT or name == "a commit's files, ms"
                print(f"  {name:<24} disk {value:8.2f}  home {far[name]:8.2f}  {ratio:5.2f} x")
            sys.stdout.flush()
    print(f"limit {LIMIT} x")
    return 0 if held else 1


def in_turns(near: Path, far: Path, runs: int, seconds: int) -> tuple[Figures, Figures]:
    """Each question to one and then to the other, so that both meet the same neighbours."""
    both = (near, far)
    figures: list[dict[str, list[float]]] = [{}, {}]

    def note(figure: dict[str, list[float]], name: str, value: float) -> None:
        figure.setdefault(name, []).append(value)

    with served(Home(near / "charts")) as ours, served(Home(far / "charts")) as theirs:
        for project in charts.LIMITS_MS:
            for connection in (ours, theirs):
                charts.ask_for_curves(connection, project)
            for _ in range(ROUNDS):
                for connection, one in zip((ours, theirs), figures, strict=True):
                    took = timed(lambda: charts.ask_for_curves(connection, project))  # noqa: B023
                    note(one, f"chart of {project} runs, ms", took)
    for _ in range(ROUNDS_OF_ROWS):
        for place, one in zip(both, figures, strict=True):
            home = Home(place / f"rows {time.time_ns()}")
            with served(home):
                for name, value in rows(home, runs, seconds).items():
                    note(one, name, value)
    for _ in range(ROUNDS * 5):
        for place, one in zip(both, figures, strict=True):
            note(one, "a commit's files, ms", timed(lambda: commit(place / "log")))  # noqa: B023
    near_figures, far_figures = (
        {name: statistics.median(values) for name, values in one.items()} for one in figures
    )
    return near_figures, far_figures


@contextlib.contextmanager
def served(home: Home) -> Iterator[Connection]:
    start_server(home)
    discovery = read_discovery(home)
    assert discovery is not None
    try:
        yield Connection(discovery.url, discovery.key)
    finally:
        stop_server(home)


def rows(home: Home, runs: int, seconds: int) -> Figures:
    discovery = read_discovery(home)
    assert discovery is not None
    before = cpu_seconds(discovery.pid)
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        live_load.measure(home, runs, seconds, 0)
    shown = text.getvalue()
    if "every row is stored once" not in shown:
        raise SystemExit(shown)
    lates = re.findall(r"^rows.*?p50 +([\d.]+) ms p99 +([\d.]+) ms", shown, re.MULTILINE)[0]
    return {
        "rows, p50, ms": float(lates[0]),
        "rows, p99, ms": float(lates[1]),
        "CPU of the server, s": cpu_seconds(discovery.pid) - before,
    }


def commit(file: Path) -> None:
    """Pages written over older ones and synced, as SQLite does with its log."""
    with file.open("r+b" if file.exists() else "wb", buffering=0) as log:
        for start in range(0, len(COMMIT), 4096):
            log.write(COMMIT[start : start + 4096])
        os.fdatasync(log.fileno())


def timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return (time.perf_counter() - begin) * 1e3


if __name__ == "__main__":
    sys.exit(main())
