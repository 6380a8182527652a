"""`runyard doctor` on a real cluster, with and without accounting."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from runyard.home import Home
from tests.conftest import RunRunyard
from tests.slurm.cluster import ClusterSpec, SlurmCluster
from tests.slurm.plugin import MakeCluster

pytestmark = pytest.mark.slurm


def states(text: str) -> dict[str, tuple[str, str]]:
    findings = json.loads(text)["findings"]
    return {f"{one['group']}/{one['name']}": (one["state"], one["says"]) for one in findings}


def test_the_doctor_sees_the_cluster_from_outside_and_inside(
    runyard: RunRunyard, state_folder: Home, slurm_cluster: SlurmCluster, tmp_path: Path
) -> None:
    project = tmp_path / "my 'project'"
    project.mkdir()
    (project / "runyard.yaml").write_text("command: python train.py\nresources: {gpus: 1}\n")
    there = {**slurm_cluster.env, "XDG_CONFIG_HOME": str(tmp_path / "config")}
    assert runyard("server", "start").returncode == 0
    done = runyard("doctor", "--job", "--json", "--write", env=there, cwd=project, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    found = states(done.stdout)
    assert found["Slurm/slurm"][0] == "ok"
    assert f"cluster {slurm_cluster.name}" in found["Slurm/slurm"][1]
    assert found["Slurm/partitions"][1] == (
        "main (default, no limit), high (no limit), short (up to 1m)"
    )
    assert found["Slurm/gpus"][1] == "4 fake a node"
    assert found["Slurm/accounting"][1] == "there is a database (sacct)"
    assert found["this project/runyard.yaml"][0] == "ok"
    for name in ("job", "python", "project folder", "state folder", "server"):
        assert found[f"compute nodes/{name}"][0] == "ok", found
    assert "the key is taken" in found["compute nodes/server"][1]
    assert [one.name for one in project.iterdir()] == ["runyard.yaml"]  # Nothing is left behind.

    # The draft is a profile, and the cluster is known by it from now on.
    which = json.loads(runyard("clusters", "which", "--json", env=there).stdout)
    assert which["name"] == slurm_cluster.name
    shown = json.loads(runyard("clusters", "show", "--json", env=there).stdout)
    assert shown["gpus"]["types"]["fake"]["per_node"] == 4
    assert shown["limits"]["by_partition"]["short"]["longest"] == 60
    again = runyard("doctor", "--write", env=there, cwd=project)
    assert again.returncode == 2
    assert "there is a profile" in again.stderr


def test_a_job_that_slurm_refuses_and_one_that_cannot_start(
    runyard: RunRunyard, slurm_cluster: SlurmCluster, tmp_path: Path
) -> None:
    there = slurm_cluster.env
    refused = runyard("doctor", "--job", "-p", "nowhere", "--json", env=there, cwd=tmp_path)
    assert refused.returncode == 1
    state, says = states(refused.stdout)["compute nodes/job"]
    assert state == "fail"
    assert "invalid partition" in says.lower()
    waiting = runyard(
        "doctor", "--job", "--json", "--sbatch=--begin=now+1hour", "--wait", "3s",
        env=there, cwd=tmp_path,
    )  # fmt: skip
    state, says = states(waiting.stdout)["compute nodes/job"]
    assert state == "fail"
    assert "did not run within 3 s" in says
    assert slurm_cluster.run("squeue", "-h", "-n", "runyard-doctor").stdout == ""


def test_ctrl_c_leaves_neither_job_nor_folder(
    state_folder: Home, slurm_cluster: SlurmCluster, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "runyard", "doctor", "--job", "--sbatch=--begin=now+1hour"],
        cwd=project, env={**os.environ, **slurm_cluster.env}, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    said = process.stderr.readline()
    while "pending" not in said:
        assert said, "it ended before its job was waiting"
        said = process.stderr.readline()
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=180) == -signal.SIGINT
    process.stderr.close()
    assert list(project.iterdir()) == []
    assert slurm_cluster.run("squeue", "-h", "-n", "runyard-doctor").stdout == ""


def test_without_accounting(
    runyard: RunRunyard, make_slurm_cluster: MakeCluster, tmp_path: Path
) -> None:
    cluster = make_slurm_cluster(ClusterSpec(nodes=1, gpus=0, accounting=False))
    done = runyard("doctor", "--job", "--json", env=cluster.env, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    found = states(done.stdout)
    assert found["Slurm/accounting"][1].startswith("no database")
    assert found["Slurm/gpus"][0] == "warn"
    assert "Slurm/accounts" not in found
    assert found["compute nodes/job"][0] == "ok"
