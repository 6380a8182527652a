"""What agents cost Slurm's controller: one `squeue` in 15 s, however many there are.

`RUNYARD_MANY_AGENTS=1` has 500 agents as plain processes with a job's environment; they take 12 GB
of memory. Another number than 1 is the number of agents.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard.actions.sweeping.agent_process import agent_command
from runyard.actions.sweeping.slots import Slots
from tests.node.terminals import until
from tests.slurm.cluster import SlurmCluster
from tests.slurm.warden import end_processes
from tests.slurm.yard import Yard

pytestmark = pytest.mark.slurm

MANY = int(os.environ.get("RUNYARD_MANY_AGENTS") or 0)
JOBS = 16
POLL_SECONDS = 15
# How many answers are watched.
ANSWERS = 5
# So many agents start at once: on nodes of their own they would not wait for each other's CPU.
WAVE = 20
COMMANDS = ("squeue", "scontrol", "sacct", "scancel", "sinfo")
COUNTING = """\
#!/bin/sh
echo "$(date +%s.%N) $(basename "$0")" >> {log}
exec {program} "$@"
"""
SWEEP = {
    "method": "grid",
    "command": ["sh", "-c", "exec sleep 3600"],
    "parameters": {"n": {"values": list(range(max(JOBS, MANY, 500)))}},
}


@pytest.fixture(scope="module")
def counted(
    module_environment: pytest.MonkeyPatch, module_yard: Yard, slurm_cluster: SlurmCluster
) -> Yard:
    """Slurm's commands of the jobs write down when they were called; agents look as often as they
    ever do."""
    folder = module_yard.project / "counting"
    path = slurm_cluster.env["PATH"]
    for name in COMMANDS:
        program = subprocess.check_output(
            ["sh", "-c", f"command -v {name}"], env={"PATH": path}, text=True
        ).strip()
        file = module_yard.write(
            f"counting/{name}", COUNTING.format(log=calls_file(module_yard), program=program)
        )
        file.chmod(0o755)
    profile = {"script": {"path": [str(folder)]}, "elasticity": {"spot": ["main"]}}
    module_yard.write("profiles/counted.yaml", json.dumps(profile))
    module_yard.write("sweep.yaml", json.dumps(SWEEP))
    module_environment.setenv("RUNYARD_CLUSTERS", str(module_yard.project / "profiles"))
    module_environment.setenv("RUNYARD_CLUSTER", "counted")
    return module_yard


@pytest.fixture(autouse=True)
def no_jobs(counted: Yard) -> Iterator[None]:
    calls_file(counted).unlink(missing_ok=True)
    yield
    counted.cluster.cancel_jobs()


def calls_file(yard: Yard) -> Path:
    return yard.project / "calls"


def read_calls(yard: Yard) -> list[tuple[float, str]]:
    file = calls_file(yard)
    lines = file.read_text().splitlines() if file.exists() else []
    return sorted((float(moment), name) for moment, name in map(str.split, lines))


def count_requests(cluster: SlurmCluster) -> int:
    """How often the controller was asked for jobs, by its own count."""
    by_kind = cluster.run("sdiag").stdout.partition("by user")[0]
    counts = re.findall(r"REQUEST_JOB_(?:USER_)?INFO\s.*?count:(\d+)", by_kind)
    return sum(map(int, counts))


def await_agents(yard: Yard, sweep: int, agents: int) -> None:
    """Until so many have a trial."""

    def at_work() -> int:
        return sum(trial["state"] == "running" for trial in yard.api.sweeps.trials(sweep))

    until(lambda: at_work() >= agents, lambda: f"{at_work()} agents", 600)


def watch(yard: Yard, sweep: int, agents: int) -> None:
    """Until so many agents have read so many answers: nobody asks sooner than it may."""
    await_agents(yard, sweep, agents)
    calls, requests = len(read_calls(yard)), count_requests(yard.cluster)
    began = time.time()
    until(lambda: len(read_calls(yard)) >= calls + ANSWERS, "so many answers", 600)
    asked = count_requests(yard.cluster) - requests
    gaps = [later[0] - sooner[0] for sooner, later in itertools.pairwise(read_calls(yard))]
    assert {name for _, name in read_calls(yard)} == {"squeue"}
    assert min(gaps) >= POLL_SECONDS, gaps
    # The first of them may have begun before, and the last not have come to the controller.
    assert 0 < asked <= ANSWERS + 1, "those that the agents asked, and no other"
    print(f"{agents} agents: {asked} requests in {time.time() - began:.0f} s, gaps {gaps}")


def test_sixteen_jobs_ask_once_in_15_seconds(counted: Yard) -> None:
    said = counted.submit(
        "sweep", "sweep.yaml", "--on", "slurm", "--agents", str(JOBS), "--time", "30m",
        "--partition", "main",
    )  # fmt: skip
    watch(counted, counted.api.sweeps.find(said["sweep"])["key"], JOBS)


@pytest.mark.skipif(not MANY, reason="RUNYARD_MANY_AGENTS=1: 500 agents take 12 GB of memory")
def test_five_hundred_agents_ask_once_in_15_seconds(counted: Yard, tmp_path: Path) -> None:
    agents = 500 if MANY == 1 else MANY
    job = counted.cluster.submit("sleep 3600", "--time=60")
    counted.cluster.wait_for(job, "RUNNING")
    sweep = counted.api.sweeps.create(SWEEP, project="many", folder=str(tmp_path))
    job_file = counted.write("job.json", json.dumps({"limit": 3600, "pushed_out": True}))
    words = agent_command(
        sweep["key"], slots=Slots(), folder=str(tmp_path), control=None, quiet=True
    )
    environ = {
        **counted.cluster.env,
        "PATH": f"{counted.project / 'counting'}:{counted.cluster.env['PATH']}",
        "RUNYARD_HOME": str(counted.home.path),
        "SLURM_JOB_ID": job,
        "SLURM_CLUSTER_NAME": counted.cluster.name,
    }
    command = [*words, "--job", str(job_file)]
    processes = []
    try:
        for count in range(agents):
            await_agents(counted, sweep["key"], count - WAVE)
            processes.append(
                subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environ, cwd=tmp_path)
            )
        watch(counted, sweep["key"], agents)
    finally:
        # At once, with their keepers and programs: 500 that save and say goodbye take minutes.
        end_processes(tmp_path, timeout=180)
        for process in processes:
            process.wait()
