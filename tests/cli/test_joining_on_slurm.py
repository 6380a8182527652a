"""More agents for a sweep that is there, and the address of its server, where there is Slurm.

`sbatch` is a stand-in: what is asked of it is the matter here.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

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


def test_agents_that_are_added_ask_for_what_the_sweep_asked_for(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path, slurm: dict[str, str]
) -> None:
    (tmp_path / "train.py").write_text("print('hello')\n")
    (tmp_path / "sweep.yaml").write_text(json.dumps(FILE))
    # Programs on nodes do not reach a server that listens on this machine alone.
    env = runyard("env", cwd=tmp_path, env=slurm)
    assert "not from compute nodes" in env.stderr
    assert "runyard server restart --listen cluster" in env.stderr
    words = ("--no-check", "--time", "1m", "--nodes", "2", "-W", "srun", "--yes", "--json")
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
    # Here there is nothing to show.
    here = runyard("sweep", sweep, "--dry-run", cwd=tmp_path)
    assert here.returncode == 2
