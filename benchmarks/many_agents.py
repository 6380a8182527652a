"""Hundreds of agents against one server: is a trial lost, does one run twice, what does it cost?

    python -m benchmarks.many_agents [--agents 500] [--trials 5000] [--seconds 1]

Every agent is a real one, a process with its keeper, and every trial a real program that says that
it began and sleeps. All on one machine: the floor is as many starts of processes, on its cores.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.handout import cpu_seconds
from runyard.actions.sweeping.agent_process import agent_command
from runyard.actions.sweeping.slots import Slots
from runyard.client.api import Api
from runyard.client.discover import ensure_server, stop_server
from runyard.home import Home, read_discovery

LIMIT = 1.0  # Of a core, for the server.


@dataclass(frozen=True)
class Measured:
    trials: int
    begun: Counter[str]
    states: Counter[str]
    attempts: int
    wall: float
    server_cpu: float
    agent_memory: float

    @property
    def lost(self) -> int:
        return self.trials - self.states["finished"]

    @property
    def doubled(self) -> int:
        """Trials whose program began more than once."""
        return sum(count > 1 for count in self.begun.values())

    @property
    def share(self) -> float:
        return self.server_cpu / self.wall


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=500)
    parser.add_argument("--trials", type=int, default=5000)
    parser.add_argument("--seconds", type=float, default=1.0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), args.agents, args.trials, args.seconds)
    print(f"{args.agents} agents, {args.trials} trials of {args.seconds:g} s each")
    print(f"  lost {found.lost}, run twice {found.doubled}, attempts {found.attempts}")
    print(f"  {found.wall:.1f} s, at best {args.trials * args.seconds / args.agents:.1f} s")
    print(f"  server: {found.server_cpu:.1f} s of CPU, {found.share:.2f} of a core, "
          f"{found.server_cpu / args.trials * 1e3:.2f} ms a trial")  # fmt: skip
    print(f"  an agent with its keeper: {found.agent_memory / 2**20:.1f} MiB of its own")
    return 0 if not found.lost and not found.doubled and found.share < LIMIT else 1


def measure(folder: Path, agents: int, trials: int, seconds: float) -> Measured:
    home = Home(folder / "state")
    api = ensure_server(home).api
    try:
        discovery = read_discovery(home)
        assert discovery is not None
        sweep = api.sweeps.create(
            {
                "method": "grid",
                "command": ["sh", "-c", f'echo "$RUNYARD_TRIAL" >> began; exec sleep {seconds}'],
                "parameters": {"n": {"values": list(range(trials))}},
            },
            project="many",
            folder=str(folder),
        )
        before, begun = cpu_seconds(discovery.pid), time.perf_counter()
        with started(home, sweep["key"], agents, folder) as processes:
            memory = wait_for_end(api, sweep["key"], processes)
        wall, used = time.perf_counter() - begun, cpu_seconds(discovery.pid) - before
        found = api.sweeps.trials(sweep["key"])
        return Measured(
            trials,
            Counter((folder / "began").read_text().split()),
            Counter(trial["state"] for trial in found),
            sum(trial["attempts"] for trial in found),
            wall,
            used,
            memory,
        )
    finally:
        stop_server(home)


@contextmanager
def started(
    home: Home, sweep: int, agents: int, folder: Path
) -> Iterator[list[subprocess.Popen[bytes]]]:
    words = agent_command(sweep, slots=Slots(), folder=str(folder), control=None, quiet=True)
    environ = {**os.environ, "RUNYARD_HOME": str(home.path)}
    processes = [
        subprocess.Popen(words, stdin=subprocess.DEVNULL, env=environ, cwd=folder)
        for _ in range(agents)
    ]
    try:
        yield processes
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


def wait_for_end(api: Api, sweep: int, processes: Sequence[subprocess.Popen[bytes]]) -> float:
    """Until the sweep is over; how much memory an agent has, measured on the way."""
    memory = 0.0
    while True:
        found = api.sweeps.sweep(sweep)
        if found["state"] != "running":
            return memory
        if not memory and found["counts"]["finished"] * 4 > (found["expected"] or 0):
            memory = _memory_of([process.pid for process in processes[:20]])
        time.sleep(0.5)


def _memory_of(pids: Sequence[int]) -> float:
    """Bytes of one agent and its keeper; what processes share counts in parts."""
    whole, known = 0, set(map(str, pids))
    for entry in Path("/proc").iterdir():
        try:
            parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            is_keeper = parent in known and b"runyard.node" in (entry / "cmdline").read_bytes()
            if entry.name in known or is_keeper:
                rollup = (entry / "smaps_rollup").read_text()
                whole += int(rollup.partition("Pss:")[2].split()[0]) * 1024
        except (OSError, IndexError):
            continue
    return whole / max(1, len(known))


if __name__ == "__main__":
    sys.exit(main())
