"""A job's folder on its nodes' disks: made, filled, emptied and removed, however the job ends."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.node.terminals import until
from tests.slurm.yard import Yard

pytestmark = pytest.mark.slurm

# Results first, so that they are there whatever comes.
WRITES = """\
import os, pathlib, signal, sys, time
how = sys.argv[1] if len(sys.argv) > 1 else ""
if how == "stay":  # Until it is killed.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
local = pathlib.Path(os.environ["SLURM_TMPDIR"])
read = sorted(str(one.relative_to(local)) for one in (local / "data").rglob("*") if one.is_file())
(local / "out").mkdir(exist_ok=True)
(local / "out" / "sum.txt").write_text(str(len(read)))
print("read", len(read), "in", local, flush=True)
if how == "fail":  # When all ranks are there: the first that fails ends the others.
    beside = pathlib.Path(os.environ["RUNYARD_CHECKPOINT_DIR"])
    (beside / os.environ["RANK"]).touch()
    while len(list(beside.glob("[0-9]"))) < int(os.environ["WORLD_SIZE"]):
        time.sleep(0.02)
    sys.exit(3)
if how in ("wait", "stay"):
    time.sleep(900)
"""


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The disk of every node of the rig, which are all on this machine."""
    folder = tmp_path_factory.mktemp("disk")
    folder.chmod(0o700)
    return folder


@pytest.fixture(scope="module")
def yard(module_environment: pytest.MonkeyPatch, quoted_yard: Yard, disk: Path) -> Yard:
    scratch = quoted_yard.project.parent / "scratch"
    storage = {
        "local": f"{disk}/${{SLURM_JOB_ID}}_${{SLURM_ARRAY_TASK_ID:-0}}",
        "local_made_by_us": True,
        "scratch": str(scratch),
    }
    quoted_yard.write("profiles/rig.yaml", json.dumps({"storage": storage}))
    module_environment.setenv("RUNYARD_CLUSTERS", str(quoted_yard.project / "profiles"))
    module_environment.setenv("RUNYARD_CLUSTER", "rig")
    quoted_yard.write("writes.py", WRITES)
    data = scratch / "project" / "data"
    data.mkdir(parents=True)
    for number in range(20):
        (data / f"{number} of ü.txt").write_text("x")
    return quoted_yard


def scratch(yard: Yard) -> Path:
    return yard.project.parent / "scratch" / "project"


def send(yard: Yard, how: str, *words: str) -> tuple[str, dict[str, object]]:
    said = yard.submit(
        "submit", *words, "--data", "data", "--results", "out", "--", "python", "writes.py", how
    )
    return said["jobs"][0]["job_id"], said


def test_every_node_has_the_data_and_its_results_come_back(yard: Yard) -> None:
    job, said = send(yard, "", "--distributed", "srun", "--nodes", "2", "--tasks-per-node", "1")
    yard.cluster.wait_for(job, "COMPLETED")
    assert yard.logs(said).count("read 20 in") == 2
    found = [one.name for one in (scratch(yard) / "results").glob(f"{job}-*")]
    assert len(found) == 2, yard.logs(said)


def test_data_that_cannot_be_had_stops_the_job_before_its_work(yard: Yard) -> None:
    refused = yard.type("submit", "--data", "nowhere", "--", "python", "writes.py", check=False)
    assert refused.returncode == 2
    assert re.search(r"--data nowhere: nowhere is not in .*scratch/project", refused.stderr)
    outside = yard.type("submit", "--data", "../x", "--", "python", "writes.py", check=False)
    assert "leaves the scratch folder" in outside.stderr

    gone = scratch(yard) / "gone"
    gone.mkdir()
    blocked = yard.cluster.submit("sleep 60", "--exclusive", "--nodes=4")
    said = yard.submit("submit", "--data", "gone", "--", "python", "writes.py")
    gone.rmdir()
    yard.cluster.run("scancel", blocked)
    yard.cluster.wait_for(said["jobs"][0]["job_id"], "FAILED")
    assert "gone is not in" in yard.logs(said)
    assert "read 0 in" not in yard.logs(said)


def test_left_overs_are_removed_from_all_nodes_and_never_a_live_jobs(
    yard: Yard, disk: Path
) -> None:
    job, said = send(yard, "wait")
    until(lambda: "read 20" in yard.logs(said), "the program")
    left = disk / "4712_0"
    left.mkdir()
    (left / ".runyard-lock").touch()
    shown = json.loads(yard.type("clean", "--nodes", "--json", "--dry-run").stdout)
    assert {one["node"] for one in shown} == {"n1", "n2", "n3", "n4"}
    assert left.exists()
    told = yard.type("clean", "--nodes").stdout  # Here all four nodes have one disk.
    assert re.search(rf"n\d: before {left}; after nothing; 1 of jobs that run stay", told)
    assert re.search(r"n\d: nothing to delete", told)
    assert not left.exists()
    assert (disk / f"{job}_0" / "out").exists()
    yard.cluster.run("scancel", job)
