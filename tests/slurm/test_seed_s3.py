"""The README of NERSC's DDP example with W&B, typed as it prints it.

Its files have its names: `configs/test.yaml`, `config/sweep_config.yaml`, `export_DDP_vars.sh`,
`run.sh`, `run_sweep.sh` and `submit_batch.sh`; the trainer is examples/cnn_regressor. There is no
Shifter here: the environment is 'your own custom PyTorch environment', as the README has it. Two
ranks instead of four.
"""

from __future__ import annotations

import getpass
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard.node.ranks.ports import Port
from runyard.train import Params
from tests.slurm.workloads import EXAMPLES, place
from tests.slurm.yard import Yard
from tests.train.frameworks import ensure_framework, program_environment
from tests.train.results import weights_of

pytestmark = [pytest.mark.slurm, pytest.mark.frameworks]

# The README's port is 29500, which two jobs on one host cannot share: here it is a free one.
EXPORT_DDP_VARS = """\
export RANK=$SLURM_PROCID
export WORLD_RANK=$SLURM_PROCID
export LOCAL_RANK=$SLURM_LOCALID
export WORLD_SIZE=$SLURM_NTASKS
export MASTER_PORT={port}
"""
RUN = """\
#!/bin/bash
ngpu=2
config_file=./configs/test.yaml
config="test"
run_num="0"
export MASTER_ADDR=$(hostname)
cmd="python train.py --yaml_config=$config_file --config=$config --run_num=$run_num"
srun -l -n $ngpu --cpus-per-task=1 --gpus-per-node $ngpu bash -c "source export_DDP_vars.sh; $cmd"
"""
# Without export_DDP_vars.sh: the trainer finds its ranks, and a port for each job, by itself.
RUN_SWEEP = """\
#!/bin/bash
ngpu=2
config_file=./configs/test.yaml
config="test"
sweep_id="<your_sweep_id>"
cmd="python train.py --yaml_config=$config_file --config=$config --sweep_id=$sweep_id"
srun -l -n $ngpu --cpus-per-task=1 --gpus-per-node $ngpu $cmd
"""
SUBMIT_BATCH = """\
#!/bin/bash -l
#SBATCH --time=01:00:00
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=2
#SBATCH --gpus-per-node=2
#SBATCH --cpus-per-task=1
#SBATCH -o %x-%j.out
source .venv/bin/activate
bash run.sh
"""
SHORT = {1e-5: "1em5", 5e-5: "5em5", 1e-4: "1em4"}
SCRIPTS = {"run.sh": RUN, "run_sweep.sh": RUN_SWEEP, "submit_batch.sh": SUBMIT_BATCH}


@pytest.fixture(scope="module")
def yard(module_environment: pytest.MonkeyPatch, module_yard: Yard) -> Iterator[Yard]:
    torch = ensure_framework("torch")
    for name, value in program_environment().items():
        module_environment.setenv(name, value)
    # torch takes three times as long to start where nothing is kept compiled.
    module_environment.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    project = module_yard.project
    place(project, "cnn_regressor", torch)
    for name in ("runyard.yaml", "config.yaml"):
        (project / name).unlink()
    small = Params.load(EXAMPLES / "cnn_regressor" / "config.yaml", "laptop").merge(
        {"max_epochs": 1, "entity": "<your_entity>", "project": "<your_project>"}
    )
    small.dump(project / "section.yaml")
    section = (project / "section.yaml").read_text().splitlines()
    module_yard.write("configs/test.yaml", "\n  ".join(["test:", *section]) + "\n")
    sweep = (EXAMPLES / "cnn_regressor" / "sweep.yaml").read_text()
    sweep = sweep.replace("# entity: my-team", "entity: <your_entity>")
    sweep = sweep.replace("project: cnn-regressor", "project: <your_project>")
    module_yard.write("config/sweep_config.yaml", sweep)
    for name, text in SCRIPTS.items():
        module_yard.write(name, text)
    with Port() as port:
        module_yard.write("export_DDP_vars.sh", EXPORT_DDP_VARS.format(port=port.number))
        type_line(module_yard, f"sed -i s/'<your_entity>'/{getpass.getuser()}/ configs/test.yaml")
        type_line(module_yard, "sed -i s/'<your_project>'/cnn-ddp/ configs/test.yaml")
        for name, value in (("entity", getpass.getuser()), ("project", "cnn-ddp")):
            type_line(module_yard, f"sed -i s/'<your_{name}>'/{value}/ config/sweep_config.yaml")
        yield module_yard


def type_line(yard: Yard, line: str) -> str:
    """A line in a shell of the login node, logged in to W&B. What it printed."""
    commands = os.pathsep.join(
        [str(yard.project / ".venv" / "bin"), str(Path(sys.executable).parent)]
    )
    environ = {**os.environ, **{name: yard.cluster.env[name] for name in ("SLURM_CONF", "PATH")}}
    environ["PATH"] = f"{commands}{os.pathsep}{environ['PATH']}"
    login = 'eval "$(runyard env)"\n' if "sed" not in line else ""
    done = subprocess.run(
        ["bash", "-c", login + line],
        cwd=yard.project, env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def submit(yard: Yard) -> str:
    (job,) = re.findall(r"Submitted batch job (\d+)", type_line(yard, "sbatch submit_batch.sh"))
    return str(job)


def ended(yard: Yard, job: str) -> str:
    """What a job has printed."""
    yard.cluster.wait_for(job, "COMPLETED", 400)
    return (yard.project / f"submit_batch.sh-{job}.out").read_text()


def test_sbatch_submit_batch_and_bash_run_in_an_allocation(yard: Yard) -> None:
    printed = ended(yard, submit(yard))
    # Labelled by `srun -l`; rank 0 alone prints.
    assert re.search(r"^0: epoch 1: train_loss", printed, re.MULTILINE)
    assert "0.001 million parameters on 2 x cpu" in printed
    assert not re.search(r"^1: ", printed, re.MULTILINE), printed
    folder = yard.project / "expts" / "test" / "0"
    assert weights_of(folder)[0] == 1
    assert list((folder / "wandb").glob("run-*"))
    (run,) = yard.api.runs(limit=None)
    assert (run["entity"], run["project"], run["name"], run["group"], run["state"]) == (
        getpass.getuser(), "cnn-ddp", "test-0", "test", "finished",
    )  # fmt: skip

    # The same command goes on, in an interactive allocation too, and in the same run of W&B.
    type_line(yard, "sed -i 's/max_epochs: 1/max_epochs: 2/' configs/test.yaml")
    printed = type_line(yard, "salloc -N 1 -n 2 --gpus-per-node 2 bash run.sh")
    assert "going on at step 1 from" in printed
    assert weights_of(folder)[0] == 2
    (run,) = yard.api.runs(limit=None)
    assert [row["_step"] for row in yard.api.rows(run)] == [1, 2]


def test_wandb_sweep_and_two_launches_of_run_sweep_at_once(yard: Yard) -> None:
    printed = type_line(yard, "wandb sweep config/sweep_config.yaml")
    (sweep_id,) = re.findall(r"Creat\w+ sweep with ID: (\w+)", re.sub(r"\x1b\[\d*m", "", printed))
    type_line(yard, f"sed -i 's/<your_sweep_id>/{sweep_id}/' run_sweep.sh")
    type_line(yard, "sed -i 's/max_epochs: 2/max_epochs: 1/' configs/test.yaml")
    type_line(yard, "sed -i 's/bash run.sh/bash run_sweep.sh/' submit_batch.sh")
    for job in [submit(yard), submit(yard)]:
        assert re.search(r"^0: done: val_loss", ended(yard, job), re.MULTILINE)
    sweep = yard.api.sweeps.find(sweep_id)
    assert (sweep["entity"], sweep["project"]) == (getpass.getuser(), "cnn-ddp")
    runs = [yard.api.run(trial["id"]) for trial in yard.api.sweeps.trials(sweep["key"])]
    # Another setting of the grid each; the run is named by it, and the folder like the run.
    settings = {(run["config"]["lr"], run["config"]["batch_size"]) for run in runs}
    assert len(settings) == 2 == len(runs)
    for run in runs:
        lr, batch_size = run["config"]["lr"], run["config"]["batch_size"]
        assert run["name"].startswith("test_")
        assert f"_lr{SHORT[lr]}" in run["name"]
        assert f"_batchsize{batch_size}" in run["name"]
        assert run["state"] == "finished"
        assert weights_of(yard.project / "sweeps" / sweep_id / run["name"])[0] == 1
