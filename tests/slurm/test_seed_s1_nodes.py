"""Workflows of a lab's own Slurm scripts, as their page prints them: containers, data, many nodes.

Only the name of the script that submits is another one: `runyard submit`.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from tests.live.apptainer import make_apptainer, make_sif
from tests.live.programs import curves
from tests.live.small_image import host_mounts
from tests.slurm.yard import Yard
from tests.train.frameworks import ensure_framework, program_environment

pytestmark = [pytest.mark.slurm, pytest.mark.frameworks]

IMAGE = "singularity_container.sif"


@pytest.fixture(scope="module")
def yard(
    tmp_path_factory: pytest.TempPathFactory,
    module_environment: pytest.MonkeyPatch,
    module_yard: Yard,
) -> Yard:
    """Data on scratch, and on every node a folder of its own on its disk."""
    disk = tmp_path_factory.mktemp("scratch-ssd")
    disk.chmod(0o700)
    module_environment.setenv("TMPDIR", str(disk))
    scratch = module_yard.project.parent / "scratch"
    storage = {"scratch": str(scratch)}
    module_yard.write("profiles/lab.yaml", json.dumps({"storage": storage}))
    module_environment.setenv("RUNYARD_CLUSTERS", str(module_yard.project / "profiles"))
    module_environment.setenv("RUNYARD_CLUSTER", "lab")
    for number in (1, 2, 3):
        folder = scratch / "project" / "datasets" / f"dataset{number}"
        folder.mkdir(parents=True)
        (folder / "words.txt").write_text(f"words {number}")
    return module_yard


READS = """\
import os, pathlib, sys
local = pathlib.Path(os.environ["SLURM_TMPDIR"])
found = sorted(str(one.relative_to(local)) for one in local.glob("datasets/*"))
words = pathlib.Path(sys.argv[1].partition("=")[2], "words.txt").read_text()
print("node", os.environ["SLURMD_NODENAME"], "reads", words, "of", *found, "in", local, flush=True)
"""


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["--data", "datasets"], "datasets/dataset1 datasets/dataset2 datasets/dataset3"),
        (
            ["--data", "datasets/dataset1", "datasets/dataset2"],
            "datasets/dataset1 datasets/dataset2",
        ),
    ],
)
def test_data_is_on_every_node_under_the_paths_that_were_typed(
    yard: Yard, words: list[str], names: str
) -> None:
    yard.write("my_program.py", READS)
    said = yard.submit(
        "submit", *words, "-n", "2", "-W", "srun", "--",
        "python", "my_program.py", "--data_dir=${SLURM_TMPDIR}/datasets/dataset1",
    )  # fmt: skip
    yard.cluster.wait_for(said["jobs"][0]["job_id"], "COMPLETED", 180)
    logs = yard.logs(said)
    found = re.findall(rf"node (n\d) reads words 1 of {names} in (\S+)", logs)
    assert [len(set(column)) for column in zip(*found, strict=True)] == [2, 2], logs
    # The folders went with the job.
    assert not [one for _, one in found if Path(one).exists()]


# Ends well on the first node, and meanwhile badly on the second.
ONE_FAILS = """\
import os, pathlib, sys, time
beside = pathlib.Path(os.environ["RUNYARD_CHECKPOINT_DIR"])
if os.environ["RANK"] == "1":
    while not (beside / "ended-well").exists():
        time.sleep(0.02)
    time.sleep(1)
    print("the second node fails", flush=True)
    sys.exit(3)
(beside / "ended-well").touch()
"""


def test_all_nodes_are_waited_for_and_one_that_fails_fails_the_job(yard: Yard) -> None:
    yard.write("fails.py", ONE_FAILS)
    said = yard.submit("submit", "-n", "2", "-W", "srun", "--", "python", "fails.py")
    (record,) = yard.cluster.wait_for(said["jobs"][0]["job_id"], "FAILED", 180)
    assert record["ExitCode"] == "3:0"
    assert "the second node fails" in yard.logs(said)


def test_an_experiment_is_repeated_with_many_seeds(yard: Yard) -> None:
    yard.write("seeded.py", "import sys; print('seeded', *sys.argv[1:])\n")
    said = yard.submit("submit", "--seeds", "3", "--", "python", "seeded.py", "--lr=1")
    assert said["jobs"][0]["array"] == "1-3"
    yard.ended(said["sweep"])
    yard.cluster.wait_for(said["jobs"][0]["job_id"], "COMPLETED", 180)
    seeds = re.findall(r"seeded --lr=1 --seed (\d)", yard.logs(said))
    assert sorted(seeds) == ["0", "1", "2"]


# One trial of a sweep in a container: says where it is, and logs by the stock client.
IN_THE_IMAGE = """\
import os, pathlib, wandb
run = wandb.init()
for step in range(3):
    run.log({"loss": run.config.lr * step})
run.finish()
pathlib.Path(os.environ["RUNYARD_CHECKPOINT_DIR"], "model").write_text("kept")
pathlib.Path(os.environ["db_dir"], "database").write_text("gone with the job")
inside = pathlib.Path("/in-the-image").read_text()
print("image", os.environ.get("APPTAINER_CONTAINER"), "from", inside,
      "task", os.environ["SLURM_ARRAY_TASK_ID"], "of", os.environ["SLURM_ARRAY_JOB_ID"],
      "rank", os.environ["SLURM_PROCID"], "host", os.environ.get("OF_THE_HOST"),
      "local", os.environ["SLURM_TMPDIR"], flush=True)
"""


@pytest.fixture(scope="module")
def apptainer(tmp_path_factory: pytest.TempPathFactory, yard: Yard) -> dict[str, str]:
    """The environment of somebody who has Apptainer, and the project's image."""
    programs = make_apptainer(tmp_path_factory.mktemp("bin"))
    make_sif(yard.project / IMAGE, programs)
    path = f"{Path(sys.executable).parent}:{programs}:{yard.cluster.env['PATH']}"
    return {"PATH": path, "OF_THE_HOST": "stays outside"}


def test_a_sweep_by_its_id_in_a_singularity_container(
    yard: Yard, apptainer: dict[str, str]
) -> None:
    yard.write("my_program.py", IN_THE_IMAGE)
    sweep = {
        "program": "my_program.py",
        "method": "grid",
        "metric": {"name": "loss", "goal": "minimize"},
        "parameters": {"lr": {"values": [1, 2]}},
        "command": [sys.executable, "${program}", "${args}"],
    }
    yard.write("sweeper.yml", json.dumps(sweep))
    made = json.loads(yard.type("sweep", "--no-run", "--json", "sweeper.yml").stdout)
    mounts = [word for one in host_mounts() for word in ("--mount", one)]
    said = yard.submit("submit", "-s", IMAGE, "-w", made["id"], *mounts, env=apptainer)
    sweep_at_its_end = yard.ended(made["id"])
    (job,) = said["jobs"]
    logs = yard.logs(said)
    assert sweep_at_its_end["counts"]["finished"] == 2, logs
    yard.cluster.wait_for(job["job_id"], "COMPLETED", 180)
    found = re.findall(
        rf"image (\S+) from yes task (\d) of {job['job_id']} rank 0 host None local (\S+)", logs
    )
    assert sorted(task for _, task, _ in found) == ["1", "2"], logs
    for image, _, local in found:
        assert Path(image).is_relative_to(local)
        assert not Path(local).exists()
    for trial in yard.api.sweeps.trials(made["key"]):
        assert curves(yard.home, trial["id"])["loss"]["values"] == [
            trial["values"]["lr"] * step for step in range(3)
        ]
    assert [file.read_text() for file in yard.project.parent.rglob("checkpoints/model")] == [
        "kept", "kept",
    ]  # fmt: skip


# What Lightning's users write: a Trainer that takes the counts from options, which we append.
LIGHTNING = """\
import argparse, os
import lightning, torch
from torch.utils.data import DataLoader, TensorDataset

class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
    def training_step(self, batch, _):
        return (self.layer(batch[0]) - 1).square().mean()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)
    def on_train_end(self):
        ones = self.all_gather(torch.ones(1))
        weights = self.all_gather(self.layer.weight.detach())
        print("rank", self.global_rank, "of", self.trainer.world_size, "on node",
              self.trainer.node_rank, os.environ["SLURMD_NODENAME"], "sum", int(ones.sum()),
              "same", bool((weights == weights[0]).all()), flush=True)

parser = argparse.ArgumentParser()
parser.add_argument("--num_nodes", type=int)
parser.add_argument("--devices", type=int)
options = parser.parse_args()
lightning.seed_everything(1 + int(os.environ["RANK"]), verbose=False)
trainer = lightning.Trainer(
    accelerator="cpu", strategy="ddp", num_nodes=options.num_nodes, devices=options.devices,
    max_steps=3, logger=False, enable_checkpointing=False, enable_progress_bar=False,
    enable_model_summary=False,
)
data = TensorDataset(torch.randn(64, 4))
trainer.fit(Model(), DataLoader(data, batch_size=4))
"""


def test_lightning_over_two_nodes_with_two_gpus_each(yard: Yard) -> None:
    """gloo on the CPU: the rig's GPUs are counted as real ones are, and there is no driver."""
    python = ensure_framework("torch")
    yard.write("trains.py", LIGHTNING)
    names = ("PYTHONPYCACHEPREFIX", "OMP_NUM_THREADS")
    env = {name: value for name, value in program_environment().items() if name in names}
    said = yard.submit(
        "submit", "--gpus", "2", "--cpus", "2", "--exp-name", "testing", "--nodes", "2",
        "--distributed", "lightning", "--variable", "GLOO_SOCKET_IFNAME=lo",
        "--", str(python), "trains.py", "--num_nodes", "7", env=env,
    )  # fmt: skip
    yard.cluster.wait_for(said["jobs"][0]["job_id"], "COMPLETED", 300)
    logs = yard.logs(said)
    found = re.findall(r"rank (\d) of 4 on node (\d) (n\d) sum 4 same True", logs)
    assert sorted((rank, node) for rank, node, _ in found) == [
        ("0", "0"), ("1", "0"), ("2", "1"), ("3", "1"),
    ], logs  # fmt: skip
    assert len({host for _, _, host in found}) == 2
