"""Nodes that appear when a job needs them, and that are taken away."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.slurm.cluster import ClusterSpec, SlurmCluster
from tests.slurm.plugin import MakeCluster
from tests.slurm.test_cluster import wait_until
from tests.slurm.yard import Yard, open_yard

pytestmark = pytest.mark.slurm

# Two steps, each saved; the second waits until it is let go.
SAVES = """\
import os, pathlib, time
place = pathlib.Path(os.environ["RUNYARD_CHECKPOINT_DIR"]) / "step"
here = pathlib.Path(os.environ["SHARED"])
begun = place.exists()
print("goes on" if begun else "begins", "on", os.environ["SLURMD_NODENAME"], flush=True)
place.write_text("1")
(here / "saved").touch()
while not begun:
    time.sleep(0.05)
"""
PROFILE = """\
elasticity:
  start_wait: 5m
  spot: [main]
"""


ALL = bool(os.environ.get("RUNYARD_ALL_SLURM"))
ON_AND_OFF = ClusterSpec(nodes=2, cpus=2, gpus=0, accounting=False, elastic=True)


@pytest.fixture
def bare(
    bare_slurm_cluster: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Yard]:
    with _on_spot(bare_slurm_cluster, tmp_path, monkeypatch) as opened:
        yield opened


@pytest.fixture
def cloud(
    make_slurm_cluster: MakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Yard]:
    with _on_spot(make_slurm_cluster(ON_AND_OFF), tmp_path, monkeypatch) as opened:
        yield opened


@contextlib.contextmanager
def _on_spot(
    cluster: SlurmCluster, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Yard]:
    with open_yard(folder / "spot", monkeypatch, cluster) as made:
        made.write("profiles/spot.yaml", PROFILE)
        made.write("saves.py", SAVES)
        monkeypatch.setenv("RUNYARD_CLUSTERS", str(made.project / "profiles"))
        monkeypatch.setenv("RUNYARD_CLUSTER", "spot")
        monkeypatch.setenv("SHARED", str(made.project))
        yield made


def test_a_trial_goes_on_when_its_node_is_taken_away(bare: Yard) -> None:
    said = bare.submit("submit", "--", "python", "saves.py")
    assert "#SBATCH --requeue\n" in (Path(said["folder"]) / "script.sh").read_text()
    _take_the_node_away(bare, said)


def test_a_node_that_starts_is_waited_for_and_no_error(cloud: Yard) -> None:
    said = cloud.submit("submit", "--", "python", "saves.py")
    job = said["jobs"][0]["job_id"]
    cloud.cluster.wait_for(job, "CONFIGURING", timeout=180)
    shown = json.loads(cloud.type("status", job, "--json").stdout)["jobs"][0]
    assert shown["states"] == {"CONFIGURING": 1}
    assert "its nodes are starting" in cloud.type("status", job).stdout
    assert cloud.api.sweeps.find(said["sweep"])["state"] == "running"
    if not ALL:
        return  # Slurm looks every 30 s whether a node has come.
    cloud.cluster.give_power()
    _take_the_node_away(cloud, said)


def _take_the_node_away(yard: Yard, said: dict[str, Any]) -> None:
    wait_until((yard.project / "saved").exists, timeout=180)
    (record,) = yard.cluster.show_job(said["jobs"][0]["job_id"])
    node = f"nodename={record['NodeList']}"
    yard.cluster.run("scontrol", "update", node, "state=down", "reason=taken away")
    try:
        assert yard.ended(said["sweep"], seconds=180)["counts"]["finished"] == 1
        logs = yard.logs(said)
        assert f"begins on {record['NodeList']}" in logs
        assert "goes on on n" in logs
    finally:
        # Slurm takes it back by itself when its daemon says that it is there.
        yard.cluster.run("scontrol", "update", node, "state=resume", check=False)
