"""The workflows of a guide to W&B on a cluster, as its readers type them; only its shell scripts,
`sbatch sb.sh` and the like, are runyard's commands."""

from __future__ import annotations

import json
import re

import pytest

from tests.node.terminals import until
from tests.slurm.cluster import FINAL_STATES
from tests.slurm.yard import Yard

pytestmark = pytest.mark.slurm

# The guide's program without its mathematics: same functions, options, names and order of calls.
EXAMPLE = """\
import pathlib
import wandb
from runyard import train

def create_dataset(seed=42):
    with wandb.init(project="neural_ode", job_type="create-dataset", config={"seed": seed}) as run:
        path = pathlib.Path(run.dir, "data.txt")
        path.write_text(str(seed))
        artifact = wandb.Artifact("my-dataset", type="dataset")
        artifact.add_file(str(path))
        run.log_artifact(artifact)

def main(batch_size=32, lr_strategy=(3e-3, 3e-3), steps_strategy=(500, 500),
         length_strategy=(0.1, 1), width_size=64, depth=2, seed=5678, plot=False,
         print_every=100, watch_run=False):
    config = {name: value for name, value in locals().items() if name not in ("plot", "watch_run")}
    with wandb.init(project="neural_ode", config=config) as run:
        folder = pathlib.Path(run.use_artifact("my-dataset:latest").download())
        print("data of seed", (folder / "data.txt").read_text())
        run.log({"loss_test": run.config.width_size * run.config.lr_strategy[0]})

if __name__ == "__main__":
    train.command(main)
"""
SWEEP = """\
program: basic_example.py
method: grid
metric:
  name: loss_test
  goal: minimize
parameters:
  batch_size:
    value: 32
  lr_strategy:
    value: [3e-3, 3e-3]
  steps_strategy:
    value: [500, 500]
  length_strategy:
    value: [0.1, 1]
  width_size:
    values: [20, 64, 150]
  depth:
    values: [1, 2, 3]
  seed:
    value: 42
  print_every:
    value: 100
"""
SIMULATION = """\
import pathlib, sys, time
(name,) = (word.removeprefix("-statefile=") for word in sys.argv[1:])
file = pathlib.Path(name)
step = int(file.read_text()) if file.exists() else 0
print("from", step, flush=True)
while step < 40:
    time.sleep(0.1)
    step += 1
    file.with_suffix(".new").write_text(str(step))
    file.with_suffix(".new").rename(file)
print("ended at", step, flush=True)
"""


@pytest.fixture(scope="module")
def yard(module_yard: Yard) -> Yard:
    module_yard.write("basic_example.py", EXAMPLE)
    module_yard.write("sweep_config.yaml", SWEEP)
    return module_yard


def finished(yard: Yard, *words: str) -> str:
    """Submit, wait for the end of the job, and have what it printed."""
    said = yard.submit(*words)
    (job,) = said["jobs"]
    yard.cluster.wait_for(job["job_id"], FINAL_STATES, 180)
    logs = yard.logs(said)
    assert "ended with code 0" in logs, logs
    return logs


def test_one_login_the_data_set_and_a_training_with_flags(yard: Yard) -> None:
    yard.type("login")
    make = "import basic_example; basic_example.create_dataset(seed=123)"
    finished(yard, "submit", "--", "python3", "-c", make)
    printed = finished(yard, "submit", "--", "python3", "basic_example.py", "--seed", "123")
    assert "data of seed 123" in printed
    trained, made = yard.api.runs(project="neural_ode")
    assert made["job_type"] == "create-dataset"
    assert trained["config"]["seed"] == 123
    assert trained["config"]["lr_strategy"] == [0.003, 0.003]
    assert trained["summary"]["loss_test"] == pytest.approx(64 * 0.003)


def test_a_sweep_worked_off_by_agents_as_often_as_one_wants_and_by_an_array(yard: Yard) -> None:
    """The page's "Create sweep" is in tests/page/test_sweep_page.py; here it is the command's."""
    finished(yard, "submit", "--", "python3", "-c", "import basic_example as b; b.create_dataset()")
    made = json.loads(
        yard.type(
            "sweep", "sweep_config.yaml", "--project", "neural_ode", "--no-run", "--json"
        ).stdout
    )
    sweep = yard.api.sweeps.sweep(made["key"])
    assert sweep["expected"] == 9
    name = f"{sweep['entity']}/{sweep['project']}/{sweep['id']}"
    # `sbatch sb.sh wandb agent NAME`, twice.
    for _ in range(2):
        finished(yard, "submit", "--", "wandb", "agent", "--count", "1", name)
    assert yard.api.sweeps.sweep(made["key"])["counts"]["finished"] == 2
    # `#SBATCH --array=1-30%5`, ten minutes each, and `sbatch sb_gpu_arr.sh wandb agent NAME`.
    said = yard.submit(
        "agents", "add", name, "--on", "slurm", "--agents", "30", "--at-once", "5",
        "--time", "00:10:00", "--gpus", "1",
    )  # fmt: skip
    (job,) = said["jobs"]
    assert job["array"] == "1-30"
    script = yard.type("status", job["job_id"], "--script").stdout
    for line in ("--array=1-30%5", "--time=0-00:10:00", "--gres=gpu:1"):
        assert f"#SBATCH {line}\n" in script
    assert yard.ended(sweep["id"])["counts"]["finished"] == 9
    trials = yard.api.sweeps.trials(made["key"])
    assert {(one["values"]["width_size"], one["values"]["depth"]) for one in trials} == {
        (width, depth) for width in (20, 64, 150) for depth in (1, 2, 3)
    }
    # Written as 3e-3, and a number for the program too: it multiplied by it.
    assert min(one["value"] or 0.0 for one in trials) == pytest.approx(20 * 0.003)
    yard.cluster.run("scancel", job["job_id"])  # Tasks that would find nothing to do.


def test_a_very_long_simulation_with_its_state_file(yard: Yard) -> None:
    yard.write("simulation.py", SIMULATION)
    words = ("--time", "10:00", "--chain", "30", "--", "python3", "simulation.py")
    said = yard.submit("submit", *words, "-statefile=simstate.state")
    (job,) = said["jobs"]
    script = yard.type("status", job["job_id"], "--script").stdout
    assert "#SBATCH --array=1-30%1\n" in script
    until(lambda: "from 0" in yard.logs(said), "it has begun")
    until(lambda: list(yard.home.path.rglob("simstate.state")), "it has written its state")
    yard.cluster.run("scancel", f"{job['job_id']}_1")  # As the time limit does.
    assert yard.ended(said["sweep"])["counts"]["finished"] == 1
    # It is in the project afterwards, and the same command finds nothing left to do.
    file = yard.project / "simstate.state"
    until(lambda: file.exists() and file.read_text() == "40", "the state file in the project")
    yard.cluster.run("scancel", job["job_id"])  # The links that are left.
    first, second = (int(one) for one in re.findall(r"from (\d+)", yard.logs(said)))
    assert first == 0 < second
    again = finished(yard, "submit", "--", "python3", "simulation.py", "-statefile=simstate.state")
    assert "from 40" in again


def test_clean_up_follows_a_program_that_failed_and_its_exit_code_stays(yard: Yard) -> None:
    kept = yard.project.parent / "jobresults"
    kept.mkdir()
    lines = json.dumps([f"cp resultfile {kept}/", "false"])
    yard.write("runyard.yaml", f"profile: {{script: {{after: {lines}}}}}\n")
    try:
        said = yard.submit("submit", "--", "sh", "-c", "echo 42 >resultfile; exit 3")
        (record,) = yard.cluster.wait_for(said["jobs"][0]["job_id"], "FAILED", 180)
    finally:
        (yard.project / "runyard.yaml").unlink()
    assert record["ExitCode"] == "3:0"
    assert (kept / "resultfile").read_text() == "42\n"


def test_the_useful_console_commands(yard: Yard) -> None:
    said = yard.submit("submit", "--time", "10:00", "--", "sleep", "300")
    job = said["jobs"][0]["job_id"]
    yard.cluster.wait_for(job, "RUNNING", 180)
    assert f"job {job}" in yard.type("status").stdout  # squeue -u USER --start
    assert "running on n" in yard.type("status", job).stdout  # squeue --job ID
    assert "main" in yard.type("clusters", "partitions").stdout  # sinfo -s
    yard.type("cancel", job)  # scancel ID
    yard.cluster.wait_for(job, "CANCELLED", 180)
    assert "1 CPU, 10 min" in yard.type("status", job, "--jobs").stdout  # seff ID

    def history() -> set[str]:  # sacct
        return {
            one["which"]
            for one in json.loads(yard.type("status", "--jobs", "--all", "--json").stdout)
        }

    until(lambda: job in history(), "the job in Slurm's accounting", 180)
    used = json.loads(yard.type("clusters", "usage", "--json").stdout)  # r_wlm_usage -p PROJECT -q
    assert used["source"] == "Slurm's accounting"
