"""Nodes that appear when a job needs them, and that are taken away: a real cluster of such nodes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slurm.cluster import ClusterSpec, SlurmCluster
from tests.slurm.plugin import require_slurm
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


@pytest.fixture
def yard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Yard]:
    require_slurm(accounting=False)
    spec = ClusterSpec(nodes=2, cpus=2, gpus=0, accounting=False, elastic=True)
    with SlurmCluster(spec) as cluster, open_yard(tmp_path / "cloud", monkeypatch, cluster) as made:
        made.write("profiles/cloud.yaml", PROFILE)
        monkeypatch.setenv("RUNYARD_CLUSTERS", str(made.project / "profiles"))
        monkeypatch.setenv("RUNYARD_CLUSTER", "cloud")
        monkeypatch.setenv("SHARED", str(made.project))
        yield made


def test_a_job_waits_for_its_node_and_goes_on_when_that_is_taken_away(yard: Yard) -> None:
    yard.write("saves.py", SAVES)
    said = yard.submit("submit", "--", "python", "saves.py")
    job = said["jobs"][0]["job_id"]
    assert "#SBATCH --requeue\n" in (Path(said["folder"]) / "script.sh").read_text()
    yard.cluster.wait_for(job, "CONFIGURING", timeout=60)
    shown = json.loads(yard.type("status", job, "--json").stdout)["jobs"][0]
    assert shown["states"] == {"CONFIGURING": 1}
    assert "its nodes are starting" in yard.type("status", job).stdout

    yard.cluster.give_power()
    wait_until((yard.project / "saved").exists, timeout=90)
    (record,) = yard.cluster.show_job(job)
    yard.cluster.run("scontrol", "update", f"nodename={record['NodeList']}", "state=down",
                     "reason=taken away")  # fmt: skip
    found = yard.ended(said["sweep"], seconds=120)
    assert found["counts"]["finished"] == 1
    assert [line for line in yard.logs(said).splitlines() if " on n" in line and "ns on" in line]
    assert "goes on on n" in yard.logs(said)
