"""`runyard run` inside a job: the first step to the cluster."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from runyard.home import Home
from tests.conftest import RunRunyard
from tests.live.programs import LOG_STEPS, curves, list_runs, write_program
from tests.slurm.cluster import SlurmCluster

pytestmark = pytest.mark.slurm


def test_a_run_in_a_job_is_tracked_and_knows_its_job(
    runyard: RunRunyard, state_folder: Home, slurm_cluster: SlurmCluster, tmp_path: Path
) -> None:
    program = write_program(tmp_path / "project", LOG_STEPS)
    assert runyard("server", "start").returncode == 0
    words = [sys.executable, "-m", "runyard", "run", "--", sys.executable, str(program), "5", "100"]
    script = (
        f"export RUNYARD_HOME={shlex.quote(str(state_folder.path))}\n"
        f"cd {shlex.quote(str(program.parent))}\n"
        f"{shlex.join(words)}\n"
    )
    job = slurm_cluster.submit(script, "--gres=gpu:1")
    slurm_cluster.wait_for(job, "COMPLETED", timeout=180)

    (run,) = list_runs(runyard)
    assert (run["state"], run["exit_code"]) == ("finished", 0)
    assert curves(state_folder, run["id"])["value"]["steps"] == list(range(5))
    metadata = runyard("show", "--json", run["id"])
    assert "wandb-metadata.json" in json.loads(metadata.stdout)["files"]


def test_the_exit_code_of_a_job_is_the_programs(
    runyard: RunRunyard, state_folder: Home, slurm_cluster: SlurmCluster
) -> None:
    words = shlex.join([sys.executable, "-m", "runyard", "run", "--", "sh", "-c", "exit 9"])
    script = f"export RUNYARD_HOME={shlex.quote(str(state_folder.path))}\n{words}\n"
    job = slurm_cluster.submit(script)
    (record,) = slurm_cluster.wait_for(job, "FAILED", timeout=180)
    assert record["ExitCode"] == "9:0"
    (run,) = list_runs(runyard)
    assert (run["state"], run["exit_code"]) == ("failed", 9)
