"""The submit scripts that our users come from, typed letter by letter: options, files, folders and
defaults as their document prints them. Only `bash job_submitter.sh` is `runyard submit`.

Their project: `project_root/hpc_files` is where one stands, the experiment is in a text file there,
the sweep in `sweeper.yml`, the data below `${SCRATCH}/project_root`.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.slurm.cluster import SlurmCluster
from tests.slurm.yard import Yard, open_yard

pytestmark = pytest.mark.slurm

PROGRAM = """\
import argparse, json, os, pathlib
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--data_dir")
parser.add_argument("--out")
parser.add_argument("--num_nodes")
parser.add_argument("--devices")
given = vars(parser.parse_args())
names = ("project_name", "exp_name", "scratch_dir", "SLURMD_NODENAME", "SLURM_PROCID",
         "CUDA_VISIBLE_DEVICES", "SLURM_JOB_PARTITION")
told = {name: os.environ.get(name) for name in names}
if given["data_dir"]:
    told["data"] = sorted(file.name for file in pathlib.Path(given["data_dir"]).iterdir())
told["kept"] = os.path.isdir(f"{told['scratch_dir']}/{told['exp_name']}/checkpoints")
print("SEEN", json.dumps({**given, **told}), flush=True)
"""
SWEEPER = """\
program: my_program.py
method: grid
metric:
  name: loss
parameters:
  lr:
    values: [0.1, 0.2]
command:
  - python
  - ${program}
  - ${args}
  - --data_dir=${SLURM_TMPDIR}/datasets/dataset1
  - --out=${scratch_dir}/out
"""
# PLAI as its profile has it; the rig's disk and partitions take the place of the cluster's.
PROFILE = """\
inherits: plai
submission: {values: {partition: [main, high]}, defaults: {partition: main}}
storage: {local: "${SLURM_TMPDIR}", local_made_by_us: false}
"""


@pytest.fixture(scope="module")
def yard(
    tmp_path_factory: pytest.TempPathFactory,
    module_environment: pytest.MonkeyPatch,
    slurm_cluster: SlurmCluster,
) -> Iterator[Yard]:
    folder = tmp_path_factory.mktemp("seed")
    with open_yard(folder, module_environment, slurm_cluster, "project_root") as opened:
        scratch = folder / "scratch"
        for name in ("dataset1", "dataset2", "dataset3"):
            (scratch / "project_root" / "datasets" / name).mkdir(parents=True)
            (scratch / "project_root" / "datasets" / name / f"{name}.bin").write_text(name)
        (folder / "profiles").mkdir()
        (folder / "profiles" / "rig.yaml").write_text(PROFILE)
        module_environment.setenv("RUNYARD_CLUSTERS", str(folder / "profiles"))
        module_environment.setenv("RUNYARD_CLUSTER", "rig")
        module_environment.setenv("SCRATCH", str(scratch))
        opened.write("my_program.py", PROGRAM)
        opened.write("sweeper.yml", SWEEPER)
        opened.write("hpc_files/experiment_configuration.txt", "my_program.py \\\n  --lr=0.5\n")
        yield replace(opened, project=opened.project / "hpc_files")


def at_root(yard: Yard) -> Yard:
    """The same, and the user stands in the project's root."""
    return replace(yard, project=yard.project.parent)


def seen(yard: Yard, said: dict[str, Any]) -> list[dict[str, Any]]:
    """What the programs of a submission saw, when all of its jobs have ended."""
    for job in said["jobs"]:
        yard.cluster.wait_for(job["job_id"], "COMPLETED", timeout=180)
    return [json.loads(line) for line in re.findall(r"SEEN (\{.*\})", yard.logs(said))]


def outputs(yard: Yard, said: dict[str, Any]) -> list[str]:
    """The names of a submission's logs."""
    folder = yard.project.parents[1] / "scratch" / "project_root" / "hpc_outputs"
    jobs = [job["job_id"] for job in said["jobs"]]
    return sorted(file.name for file in folder.iterdir() if any(one in file.name for one in jobs))


def test_the_experiment_of_the_usual_file(yard: Yard) -> None:
    """bash job_submitter.sh -g 1 -c 2 -t 00-01:00:00 -m 10M -e testing -p high"""
    said = yard.submit(
        "submit", "-g", "1", "-c", "2", "-t", "00-01:00:00", "-m", "10M", "-e", "testing",
        "-p", "high",
    )  # fmt: skip
    (one,) = seen(yard, said)
    assert (one["lr"], one["project_name"], one["exp_name"]) == (0.5, "project_root", "testing")
    assert (one["kept"], one["SLURM_JOB_PARTITION"]) == (True, "high")
    assert one["scratch_dir"] == str(yard.project.parents[1] / "scratch" / "project_root")
    job = said["jobs"][0]["job_id"]
    assert outputs(yard, said) == [f"run-project_root-testing-{job}.log"]
    (record,) = yard.cluster.show_job(job)
    assert record["TimeLimit"] == "01:00:00"
    assert record["TRES"].startswith("cpu=2,mem=10M,node=1")


def test_the_documents_example_over_two_nodes(yard: Yard) -> None:
    """bash job_submitter.sh --gpus 2 --cpus 2 --exp-name testing --num-nodes 2"""
    said = yard.submit(
        "submit", "--gpus", "2", "--cpus", "2", "--exp-name", "testing", "--num-nodes", "2",
        "-m", "10M",
    )  # fmt: skip
    found = seen(yard, said)
    assert sorted(one["SLURM_PROCID"] for one in found) == ["0", "1", "2", "3"]
    nodes = {one["SLURMD_NODENAME"] for one in found}
    assert len(nodes) == 2
    assert {(one["num_nodes"], one["devices"]) for one in found} == {("2", "2")}
    job = said["jobs"][0]["job_id"]
    # Slurm's name of a node in a file's is the host's; all nodes of the rig are on this one.
    host = socket.gethostname().partition(".")[0]
    assert outputs(yard, said) == [f"run-project_root-testing-{job}-{host}.log"]
    head = yard.logs(said).splitlines()[0]
    assert f"job {job} on n[" in head
    # `runyard logs` finds it by the job's number.
    assert "SEEN" in yard.type("logs", job).stdout


def test_a_sweep_that_is_there_needs_its_id(yard: Yard) -> None:
    """wandb sweep sweeper.yml; bash job_submitter.sh --wandb-sweepid [id] --data datasets"""
    made = json.loads(at_root(yard).type("sweep", "--no-run", "--json", "sweeper.yml").stdout)
    said = yard.submit(
        "submit", "--wandb-sweepid", made["id"], "--num_nodes", "2", "-g", "1", "-m", "10M",
        "--exp-name", "swept", "--data", "datasets",
    )  # fmt: skip
    found = seen(yard, said)
    assert sorted(one["lr"] for one in found) == [0.1, 0.2]
    assert {(one["exp_name"], *one["data"]) for one in found} == {("swept", "dataset1.bin")}
    assert {one["out"] for one in found} == {f"{one['scratch_dir']}/out" for one in found}
    (job,) = said["jobs"]
    assert job["array"] == "1-2"
    number = job["job_id"]
    assert outputs(yard, said) == [
        f"agents-project_root-swept-{number}_{task}.log" for task in (1, 2)
    ]
    records = yard.cluster.show_job(number)
    assert {record["NumNodes"] for record in records} == {"1"}
    assert all("gres/gpu=1" in record["TRES"] for record in records)


def test_a_sweep_in_one_go_with_the_scripts_letters(yard: Yard) -> None:
    """The same from the file: -n and -g are one node's, and it is said."""
    done = at_root(yard).type(
        "sweep", "sweeper.yml", "--on", "slurm", "--json", "-n", "2", "-g", "2", "-m", "10M",
        "-c", "1", "-e", "letters", "-p", "main", "-t", "00-00:10:00",
        "-d", "datasets/dataset1", "datasets/dataset2",
    )  # fmt: skip
    assert "nodes (--nodes 2) is 1 for each task of an array" in done.stderr
    assert "each trial has 2 GPUs (--gpus 2)" in done.stderr
    said = json.loads(done.stdout)
    found = seen(yard, said)
    assert sorted(one["lr"] for one in found) == [0.1, 0.2]
    assert {one["exp_name"] for one in found} == {"letters"}
    assert all(one["kept"] for one in found)
    assert {record["NumNodes"] for record in yard.cluster.show_job(said["jobs"][0]["job_id"])} == {
        "1"
    }


def test_the_worker_in_the_usual_file_takes_one_trial_a_task(yard: Yard) -> None:
    """experiment_configurations.txt holds `wandb agent --count 1 ENTITY/PROJECT/ID`, -w the id."""
    made = json.loads(at_root(yard).type("sweep", "--no-run", "--json", "sweeper.yml").stdout)
    place = f"{made['entity']}/{made['project']}"
    file = Path(yard.write("experiment_configurations.txt", f"wandb agent --count 1 {place}/old\n"))
    words = ("submit", "-w", made["id"], "-m", "10M", "--data", "datasets/dataset1")
    # One task alone takes one trial, and leaves the other.
    assert len(seen(yard, yard.submit(*words, "--agents", "1"))) == 1
    left = yard.api.sweeps.find(made["id"])
    assert (left["state"], left["counts"]["finished"]) == ("running", 1)
    assert len(seen(yard, yard.submit(*words))) == 1
    assert yard.ended(made["id"])["counts"]["finished"] == 2
    file.unlink()
