"""More agents for a sweep that is there, and the address of its server, where there is Slurm.

`sbatch` is a stand-in: what is asked of it is the matter here.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from runyard.actions.retry import More, changed_flags
from runyard.actions.submitting.last_request import with_last_request
from runyard.config.flags import NO_FLAGS, Flags, FlagValue
from runyard.home import Home
from tests.conftest import RunRunyard

FILE = {"program": "train.py", "method": "grid", "parameters": {"lr": {"values": [1, 2]}}}


@pytest.fixture
def slurm(tmp_path: Path) -> dict[str, str]:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in (("sbatch", "cat >/dev/null; echo 7"), ("scontrol", "true")):
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def test_a_program_that_starts_its_own_processes_keeps_its_nodes() -> None:
    flags = with_last_request(NO_FLAGS, {"nodes": 2, "cpus": 3})
    assert {path: flags[path] for path in flags.given} == {
        "resources.nodes": 2, "resources.cpus": 3, "resources.tasks_per_node": 1,
    }  # fmt: skip
    ranks = with_last_request(NO_FLAGS, {"nodes": 2, "distributed": "srun"})
    assert set(ranks.given) == {"resources.nodes", "distributed"}


def test_agents_that_are_added_ask_for_what_the_sweep_asked_for(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path, slurm: dict[str, str]
) -> None:
    (tmp_path / "train.py").write_text("print('hello')\n")
    (tmp_path / "sweep.yaml").write_text(json.dumps(FILE))
    # Programs on nodes do not reach a server that listens on this machine alone.
    env = runyard("env", cwd=tmp_path, env=slurm)
    assert "not from compute nodes" in env.stderr
    assert "runyard server restart --listen cluster" in env.stderr
    words = (
        "--no-check",
        "--time",
        "1m",
        "--nodes",
        "2",
        "-W",
        "srun",
        "--mem",
        "20M",
        "--yes",
        "--json",
    )
    done = runyard("sweep", "sweep.yaml", "--on", "slurm", *words, cwd=tmp_path, env=slurm)
    assert done.returncode == 0, done.stderr
    sweep = json.loads(done.stdout)["sweep"]
    # It listens to the cluster now.
    assert "compute nodes" not in runyard("env", cwd=tmp_path, env=slurm).stderr

    for command in (("agents", "add", sweep), ("sweep", sweep)):
        shown = runyard(*command, "--on", "slurm", "--dry-run", cwd=tmp_path, env=slurm)
        assert shown.returncode == 0, shown.stderr
        assert "as by job 7" in shown.stderr
        assert "#SBATCH --time=0-00:01:00\n" in shown.stdout
        assert "#SBATCH --nodes=2\n" in shown.stdout
        assert "nothing was made or submitted" in shown.stderr
    longer = runyard("agents", "add", sweep, "--on", "slurm", "--dry-run", "--time", "2h",
                     cwd=tmp_path, env=slurm)  # fmt: skip
    assert "#SBATCH --time=0-02:00:00\n" in longer.stdout
    # Another way to say how much memory takes the place of the first one's.
    less = runyard("agents", "add", sweep, "--on", "slurm", "--dry-run", "-m", "10M",
                   cwd=tmp_path, env=slurm)  # fmt: skip
    assert "#SBATCH --mem=10M\n" in less.stdout, less.stderr
    # Here there is nothing to show.
    here = runyard("sweep", sweep, "--dry-run", cwd=tmp_path)
    assert here.returncode == 2


def test_a_retry_with_half_as_much_memory_again_keeps_the_rest() -> None:
    wanted = Flags({"resources.memory": FlagValue(More(1.5, "+50%"), "--memory +50%")})
    flags = changed_flags(wanted, {"memory": 100, "cpus": 2}, [])
    assert (flags["resources.memory"], flags["resources.cpus"]) == (150, 2)
