"""From the end of one empty trial to the start of the next: our agent, W&B's, and the floor.

    python -m benchmarks.between_trials [TRIALS]

The floor is fork, exec and wait of the same command (`true`) in a loop, in one interpreter. All
three are measured in one run, against one server. W&B's agent asks every five seconds, so it gets
few trials.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from runyard.client.discover import ensure_server, stop_server
from runyard.client.wandb_variables import wandb_variables
from runyard.home import Home, read_discovery
from runyard.node.attempt.keeper import Keeper
from runyard.node.system.processes import launch

LIMIT_MS = 20.0  # Over the floor.
STOCK_TRIALS = 3
COMMAND = ["true"]


def main() -> int:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    with tempfile.TemporaryDirectory() as folder:
        os.environ["RUNYARD_HOME"] = f"{folder}/state"
        os.environ["WANDB_SILENT"] = "true"
        os.chdir(folder)

        home = Home(Path(folder) / "state")
        ensure_server(home)
        try:
            floor = measure_floor(trials)
            ours, rate = measure_ours(home, trials)
            stock = measure_stock(home)
        finally:
            stop_server(home)
    print(f"fork, exec, wait      {floor:8.1f} ms a trial   ({trials} trials)")
    print(f"runyard's agent       {rate:8.1f} ms a trial   {rate / floor:.1f} x the floor")
    print(f"  end to next start   {ours:8.1f} ms, the median  (limit {LIMIT_MS:g} ms)")
    print(f"wandb agent           {stock:8.1f} ms a trial   {stock / rate:.0f} x ours")
    return 0 if ours <= LIMIT_MS else 1


def measure_floor(trials: int) -> float:
    nothing = os.open(os.devnull, os.O_RDWR)
    begun = time.perf_counter()
    for _ in range(trials):
        os.waitpid(launch(COMMAND, os.environ, None, nothing), 0)
    return (time.perf_counter() - begun) / trials * 1e3


def measure_ours(home: Home, trials: int) -> tuple[float, float]:
    """Median time from an attempt's end to the next one's begin; and milliseconds a trial."""
    from runyard.node.agent import claiming
    from runyard.node.agent.__main__ import Agent
    from runyard.node.agent.job_end import JobEnd
    from runyard.node.attempt.trial_attempt import Attempt
    from runyard.node.attempt.workspace import Workspace

    ends, gaps = list[float](), list[float]()

    class Timed(Attempt):
        def _is_over(self, exit_code: int) -> None:
            ends.append(time.perf_counter())
            super()._is_over(exit_code)

        def _launch(self, workspace: Workspace, output: int, keeper: Keeper) -> None:
            super()._launch(workspace, output, keeper)
            if ends:
                gaps.append(time.perf_counter() - ends[-1])

    setattr(claiming, "Attempt", Timed)  # noqa: B010  (a typed assignment is refused)
    key = create(home, trials)[0]
    begun = time.perf_counter()
    end = JobEnd(None, time.time())
    agent = Agent(str(key), str(home.path), end=end, report=lambda _line: None)
    assert agent.run() == 0
    return statistics.median(gaps) * 1e3, (time.perf_counter() - begun) / trials * 1e3


def measure_stock(home: Home) -> float:
    """Milliseconds a trial of W&B's agent, without its start."""

    _, place = create(home, STOCK_TRIALS)
    found = read_discovery(home)
    assert found is not None
    log = Path("stock.log")
    with log.open("w") as out:
        subprocess.run(
            [Path(sys.executable).parent / "wandb", "agent", place],
            env={**os.environ, **wandb_variables(found.url, found.key, os.environ)},
            stdout=out, stderr=out, check=True, timeout=300,
        )  # fmt: skip

    api = ensure_server(home).api
    sweep = api.sweeps.find(place)
    starts = sorted(one["started_at"] or 0.0 for one in api.sweeps.trials(sweep["key"]))
    return (starts[-1] - starts[0]) / (len(starts) - 1) * 1e3


def create(home: Home, trials: int) -> tuple[int, str]:

    config = {
        "method": "random",
        "command": COMMAND,
        "program": COMMAND[0],
        "run_cap": trials,
        "parameters": {"x": {"min": 0.0, "max": 1.0}},
    }
    made = ensure_server(home).api.sweeps.create(config, project="empty")
    return made["key"], f"{made['entity']}/{made['project']}/{made['id']}"


if __name__ == "__main__":
    sys.exit(main())
