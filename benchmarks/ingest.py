"""What a logged point costs the server, through the stock client; beside OpenWandb, if it is there.

    python -m benchmarks.ingest [--openwandb /path/to/bin/openwandb]

One client process logs 100 runs of 1,000 steps of 10 metrics. Counted is the server process' CPU
time; what the GraphQL side of 100 runs costs is measured with runs of one step, and taken off.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from runyard.client.api import Api
from runyard.client.discover import connect, start_server, stop_server
from runyard.client.wandb_variables import wandb_variables
from runyard.home import Home, read_discovery

RUNS, STEPS, METRICS = 100, 1_000, 10
LIMIT_US, PEER_TIMES = 2.0, 50.0
PROGRAM = """
import os, sys, wandb
runs, steps, metrics = map(int, sys.argv[1:])
for number in range(runs):
    with wandb.init(project="bench", settings=wandb.Settings(silent=True, console="off")) as run:
        for step in range(steps):
            run.log({f"m{m}": step * 1.25 + m / 7 for m in range(metrics)})
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--openwandb", type=Path, help="the program of OpenWandb, to compare with")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ours = measure_runyard(Path(folder))
        print(f"runyard    {ours:8.2f} us a point  (limit {LIMIT_US:g})")
        if args.openwandb is None:
            return 0 if ours <= LIMIT_US else 1
        theirs = measure_openwandb(args.openwandb, Path(folder))
    times = theirs / ours
    print(f"OpenWandb  {theirs:8.2f} us a point, {times:.0f} x ours  (wanted {PEER_TIMES:g} x)")
    return 0 if ours <= LIMIT_US and theirs >= PEER_TIMES * ours else 1


def measure_runyard(folder: Path) -> float:
    home = Home(folder / "state")
    start_server(home)
    try:
        discovery = read_discovery(home)
        assert discovery is not None
        api = connect(discovery)
        cost = cost_of_a_point(
            discovery.pid, folder, wandb_variables(discovery.url, discovery.key, os.environ)
        )
        check_complete(api)
        return cost
    finally:
        stop_server(home)


def check_complete(api: Api) -> None:
    """A point that was not stored costs nothing: count them."""
    found = api.runs(project="bench")
    long = [run for run in found if run["steps"] > 1]
    assert len(long) == RUNS, len(long)
    assert all(run["steps"] == STEPS and run["state"] == "finished" for run in long)


def measure_openwandb(program: Path, folder: Path) -> float:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data = folder / "openwandb"
    data.mkdir()
    server = subprocess.Popen(
        [program, "serve", "--host", "127.0.0.1", "--port", str(port), "--data-dir", str(data)],
        cwd=data,
        env={**os.environ, "HOME": str(data)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for(url)
        return cost_of_a_point(server.pid, folder, wandb_variables(url, "0" * 40, os.environ))
    finally:
        server.terminate()
        server.wait()


def cost_of_a_point(pid: int, folder: Path, environment: dict[str, str]) -> float:
    """Microseconds of the server's CPU time, without what runs cost that log nothing."""
    log(folder, environment, 1, 1)  # Warms both sides up.
    empty = cpu_of(pid, lambda: log(folder, environment, RUNS, 1))
    full = cpu_of(pid, lambda: log(folder, environment, RUNS, STEPS))
    print(
        f"  (CPU of {RUNS} runs: {full:.2f} s, of {RUNS} empty ones: {empty:.2f} s)",
        file=sys.stderr,
    )
    return (full - empty) / (RUNS * STEPS * METRICS) * 1e6


def log(folder: Path, environment: dict[str, str], runs: int, steps: int) -> None:
    subprocess.run(
        [sys.executable, "-c", PROGRAM, str(runs), str(steps), str(METRICS)],
        check=True,
        env={**os.environ, **environment, "WANDB_DIR": str(folder), "WANDB_SILENT": "true"},
        cwd=folder,
    )


def cpu_of(pid: int, work: Callable[[], None]) -> float:
    before = cpu_seconds(pid)
    work()
    time.sleep(3)  # What the server does in the background counts too.
    return cpu_seconds(pid) - before


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_for(url: str) -> None:
    for _ in range(200):
        try:
            urllib.request.urlopen(url, timeout=2)
            return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.2)
    raise SystemExit(f"nobody answers at {url}")


if __name__ == "__main__":
    sys.exit(main())
