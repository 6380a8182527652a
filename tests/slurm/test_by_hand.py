"""What people do with a submission themselves: an id alone, and a script in an allocation."""

from __future__ import annotations

import getpass
import json
import re
from pathlib import Path

import pytest

from tests.slurm.yard import Yard

pytestmark = pytest.mark.slurm

SAYS = """\
import os, sys
print("rank", os.environ.get("RANK"), "of", os.environ.get("WORLD_SIZE"), "gpus",
      os.environ.get("CUDA_VISIBLE_DEVICES"), *sys.argv[1:], flush=True)
"""


@pytest.fixture(scope="module")
def yard(module_yard: Yard) -> Yard:
    module_yard.write("says.py", SAYS)
    grid = {"lr": {"values": [1, 2]}}
    file = {"program": "says.py", "method": "grid", "parameters": grid}
    module_yard.write("sweep.yaml", json.dumps(file))
    return module_yard


def test_a_sweep_that_was_made_before_needs_only_its_id(yard: Yard) -> None:
    made = json.loads(yard.type("sweep", "--no-run", "--json", "sweep.yaml").stdout)
    place = f"{made['entity']}/{made['project']}"
    yard.write("experiment_configurations.txt", f"wandb agent --count 1 {place}/old0\n")
    said = yard.submit("submit", "-C", "experiment_configurations.txt", "-w", made["id"])
    assert said["sweep"] == made["id"]
    assert said["jobs"][0]["array"] == "1-2"
    found = yard.ended(made["id"])
    assert found["counts"]["finished"] == 2
    agents = yard.api.jobs.job(said["jobs"][0]["job_id"])["agents"]
    assert len(agents) == 2  # Each took one trial.


def test_four_gpus_of_a_node_by_sbatch_and_inside_an_allocation(yard: Yard) -> None:
    ranks = ("--distributed", "srun", "--gpus", "4", "--tasks-per-node", "4", "--cpus", "1",
             "--memory", "100M")  # fmt: skip
    said = yard.submit("submit", *ranks, "--", "python", "says.py")
    yard.cluster.wait_for(said["jobs"][0]["job_id"], "COMPLETED", timeout=180)
    found = re.findall(r"rank (\d) of 4 gpus 0,1,2,3", yard.logs(said))
    assert sorted(found) == ["0", "1", "2", "3"]

    later = yard.submit(
        "sweep",
        "sweep.yaml",
        "--on",
        "slurm",
        *ranks,
        "--agents",
        "1",
        "--sbatch=--begin=now+1hour",
    )
    script = str(Path(later["folder"]) / "script.sh")
    inside = yard.cluster.run(
        "salloc", "--nodes=1", "--ntasks-per-node=4", "--gres=gpu:4", "--mem=100M",
        "bash", script, cwd=yard.project,
    )  # fmt: skip
    assert yard.ended(later["sweep"])["counts"]["finished"] == 2
    found = re.findall(r"rank (\d) of 4 gpus \S+ --lr=(\d)", inside.stdout)
    assert sorted(found) == [(rank, lr) for rank in "0123" for lr in "12"]
    yard.cluster.run("scancel", later["jobs"][0]["job_id"])


def test_a_reservation_is_named_and_the_job_runs_in_it(yard: Yard) -> None:
    cluster = yard.cluster
    cluster.run(
        "scontrol", "create", "reservation", "ReservationName=long", "StartTime=now",
        "Duration=60", "Nodes=n2", f"Users={getpass.getuser()}",
    )  # fmt: skip
    try:
        said = yard.submit("submit", "--reservation", "long", "--", "python", "says.py")
        (record,) = cluster.wait_for(said["jobs"][0]["job_id"], "COMPLETED")
        assert (record["Reservation"], record["NodeList"]) == ("long", "n2")
    finally:
        cluster.run("scontrol", "delete", "ReservationName=long")
