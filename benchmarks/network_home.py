"""Charts and rows on a state folder in a network home, beside the same on this machine's disk.

    python -m benchmarks.network_home [--trip 1.0] [--runs 100] [--seconds 30]

The network home is a folder over sshfs, with a server to which each request takes a millisecond.
Both times the same is asked: the curves of `benchmarks.charts`, filled on the disk beneath, and the
rows of `benchmarks.live_load`.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks import charts, live_load
from benchmarks.staging import can_mount, mounted
from runyard.client.discover import start_server, stop_server
from runyard.home import Home

LIMIT = 1.5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trip", type=float, default=1.0, help="milliseconds a request")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seconds", type=int, default=30)
    args = parser.parse_args()
    if not can_mount():
        raise SystemExit("needs sshfs, cc and an sftp-server (openssh-sftp-server)")
    with tempfile.TemporaryDirectory() as folder:
        disk, home = Path(folder) / "disk", Path(folder) / "home"
        disk.mkdir()
        home.mkdir()
        charts.fill(Home(disk / "charts"), {"few": (100, 1_000), "many": (1_000, 10_000)})

        def measure(where: Path) -> None:
            served(Home(where / "charts"), charts.measure)
            rows = Home(where / f"rows on the {where.name}")
            served(rows, lambda home: live_load.measure(home, args.runs, args.seconds, 0))

        near = told("on the disk", lambda: measure(disk))
        with mounted(disk, home, args.trip):
            far = told(f"over sshfs, {args.trip} ms a request", lambda: measure(home))
    ratios = {name: far[name] / near[name] for name in near}
    print(
        ", ".join(f"{name} {ratio:.2f} x" for name, ratio in ratios.items()), f"(limit {LIMIT} x)"
    )
    return 0 if max(ratios.values()) <= LIMIT else 1


def served(home: Home, measure: Callable[[Home], object]) -> None:
    start_server(home)
    try:
        measure(home)
    finally:
        stop_server(home)


def told(where: str, measure: Callable[[], None]) -> dict[str, float]:
    """Run what prints its figures; the milliseconds of charts, and of rows the median."""
    print(f"{where}:", flush=True)
    with tempfile.TemporaryFile("w+") as file:
        with contextlib.redirect_stdout(file):
            measure()
        file.seek(0)
        text = file.read()
    print(text)
    curves = re.findall(r"^(few|many) +([\d.]+) ms", text, re.MULTILINE)
    rows = re.findall(r"^rows.*?p50 +([\d.]+) ms p99 +([\d.]+) ms", text, re.MULTILINE)[0]
    return {name: float(value) for name, value in (*curves, ("rows p50", rows[0]))}


if __name__ == "__main__":
    sys.exit(main())
