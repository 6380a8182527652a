"""The walk-through of W&B sweeps on a Slurm cluster, typed as its document prints it.

What stands in capitals here is the document's own text. Its cloud, its conda and its data cannot be
had here; a partition called `aws` can.
"""

from __future__ import annotations

import getpass
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.environments import Missing, skip_or_fail
from tests.live.sweeping import with_python
from tests.slurm.yard import Yard
from tests.train.frameworks import ROOT, ensure_framework, program_environment

pytestmark = pytest.mark.slurm

HEADER = """\
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=2
#SBATCH --partition=aws
#SBATCH --time=0:20:0
#SBATCH --output=slurm-%j.log
"""
NODE_LIST = """\
result = subprocess.run(['scontrol', 'show', 'hostnames'], stdout=subprocess.PIPE)
node_list = result.stdout.decode('utf-8').split('\\n')[:-1]
"""
AGENTS = """\
sweep_id = wandb.sweep(config_dict, project=project_name)
sp = []
for node in node_list:
    sp.append(subprocess.Popen(['srun',
                    '--nodes=1',
                    '--ntasks=1',
                    '-w',
                    node,
                    'start-agent.sh',
                    sweep_id,
                    project_name]))
exit_codes = [p.wait() for p in sp] # wait for processes to finish
"""
START_AGENT = """\
#!/bin/bash
wandb agent $1 --project $2
"""
ONE_AGENT = "sweepid = wandb.sweep(config); wandb.agent(sweepid)\n"
INTERACTIVE = "--nodes=2 --ntasks-per-node=1 --time=01:00:00 --partition=aws"

# The first trial of each node waits for that of the other one.
TRAINS = """\
import os, pathlib, time, wandb
run = wandb.init()
pathlib.Path("here-" + os.environ["SLURMD_NODENAME"]).touch()
while len(list(pathlib.Path().glob("here-*"))) < int(os.environ["NODES"]):
    time.sleep(0.05)
run.log({"loss": run.config.lr * 2})
run.finish()
"""


@pytest.fixture(scope="module")
def yard(module_yard: Yard) -> Iterator[Yard]:
    """A partition that was added to a running cluster, as a site adds one."""
    cluster = module_yard.cluster
    cluster.run("scontrol", "create", "PartitionName=aws", "Nodes=ALL")
    try:
        yield module_yard
    finally:
        cluster.cancel_jobs()
        cluster.run("scontrol", "delete", "PartitionName=aws")


def sweep_of(lrs: list[int]) -> dict[str, object]:
    return {
        "program": "train.py",
        "command": ["python", "${program}"],
        "method": "grid",
        "metric": {"name": "loss", "goal": "minimize"},
        "parameters": {"lr": {"values": lrs}},
    }


def sbatch(yard: Yard, file: Path, **variables: str) -> str:
    """Typed in a shell that knows the server by `eval "$(runyard env)"`."""
    told = yard.type("env", "--json").stdout
    environment = {
        **yard.cluster.env,
        **{name: value for name, value in os.environ.items() if name.startswith("WANDB_")},
        **json.loads(told),
        **variables,
        "PATH": f"{yard.project}:{with_python()['PATH'].partition(':')[0]}:"
        + yard.cluster.env["PATH"],
    }
    done = subprocess.run(
        ["sbatch", str(file.relative_to(yard.project))],
        cwd=yard.project, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[-1]


def test_an_agent_on_each_node_by_the_documents_own_script(yard: Yard) -> None:
    yard.write("train.py", TRAINS)
    yard.write("start-agent.sh", START_AGENT).chmod(0o755)
    yard.write(
        "run.py",
        "import subprocess\nimport wandb\n"
        f"config_dict, project_name = {sweep_of([1, 2, 3])!r}, 'walk'\n{NODE_LIST}{AGENTS}"
        "print('exit codes', exit_codes)\n",
    )
    file = yard.write("example_torch/example.sbatch", f"{HEADER}python run.py\n")
    job = sbatch(yard, file, NODES="2")
    (record,) = yard.cluster.wait_for(job, "COMPLETED")
    said = (yard.project / f"slurm-{job}.log").read_text()
    assert "exit codes [0, 0]" in said
    assert (record["Partition"], record["NumNodes"]) == ("aws", "2")
    (sweep,) = yard.api.sweeps.sweeps(project="walk")
    trials = yard.api.sweeps.trials(sweep["key"])
    assert sorted((trial["values"]["lr"], trial["value"], trial["state"]) for trial in trials) == [
        (lr, lr * 2, "finished") for lr in (1, 2, 3)
    ]
    # No run but the trials, and an agent on each node.
    assert len(yard.api.runs(project="walk")) == 3
    assert len({trial["agent"] for trial in trials}) == 2


def test_one_agent_makes_the_sweep_and_works_it_off_in_its_job(yard: Yard) -> None:
    yard.write("train.py", TRAINS)
    yard.write("run.py", f"import wandb\nconfig = {sweep_of([1, 2])!r}\n{ONE_AGENT}")
    said = yard.submit(
        "submit", "--variable", "NODES=1", "--project", "alone", "--", "python", "run.py"
    )
    yard.cluster.wait_for(said["jobs"][0]["job_id"], "COMPLETED")
    made = [
        sweep for sweep in yard.api.sweeps.sweeps(project="alone") if sweep["id"] != said["sweep"]
    ]
    (trials,) = [yard.api.sweeps.trials(sweep["key"]) for sweep in made]
    assert [(trial["values"]["lr"], trial["state"]) for trial in trials] == [
        (1, "finished"), (2, "finished"),
    ]  # fmt: skip
    # Date, host, user, folder and the Python in use open the log.
    opening = yard.logs(said).splitlines()
    assert re.match(
        rf"runyard: \d{{4}}-.* on {socket.gethostname()}, .*, user {getpass.getuser()}$", opening[0]
    )
    (place,) = [line for line in opening if line.startswith("runyard: in ")]
    python = re.escape(with_python()["PATH"].partition(":")[0])
    assert re.fullmatch(rf"runyard: in \S+/snapshots/\S+/project, Python {python}/python", place)


def test_the_job_script_becomes_the_project_file_and_one_command(yard: Yard) -> None:
    """`sbatch example_torch/example.sbatch`: an agent on each of two nodes."""
    yard.write("sweep.yaml", json.dumps(sweep_of([1, 2, 3, 4])))
    yard.write("train.py", TRAINS)
    yard.write("example_torch/example.sbatch", f"{HEADER}python run.py\n")
    yard.write("run.py", f"{NODE_LIST}{AGENTS}")
    for file in yard.project.glob("here-*"):
        file.unlink()
    yard.type("init", "--yes")
    said = yard.submit("submit", "--variable", "NODES=2")
    found = yard.ended(said["sweep"])
    assert found["counts"]["finished"] == 4
    (job,) = said["jobs"]
    (record,) = yard.cluster.wait_for(job["job_id"], "COMPLETED")
    assert (record["Partition"], record["NumNodes"], record["TimeLimit"]) == (
        "aws",
        "2",
        "00:20:00",
    )
    assert record["CPUs/Task"] == "2"
    agents = yard.api.jobs.job(job["job_id"])["agents"]
    assert len({agent["node"] for agent in agents}) == 2

    # `sbatch add-nodes.sbatch`: four tasks of an array. Ours ask for one node each, not for four.
    again = yard.submit("sweep", "sweep.yaml", "--on", "slurm", "--sbatch=--begin=now+1hour")
    more = yard.submit(
        "agents", "add", again["sweep"], "--on", "slurm", "--agents", "4", "--form", "array",
        "--sbatch=--begin=now+1hour",
    )  # fmt: skip
    (added,) = more["jobs"]
    assert added["array"] == "1-4"
    asked = {record["NumNodes"] for record in yard.cluster.show_job(added["job_id"])}
    assert asked <= {"1", "1-1"}


def test_the_interactive_job_is_asked_for_in_the_same_words(yard: Yard) -> None:
    asked = yard.type("shell", "--dry-run", *INTERACTIVE.split()).stdout.splitlines()[0]
    for words in ("--nodes=2", "--ntasks-per-node=1", "--time=0-01:00:00", "--partition=aws"):
        assert words in asked.split()
    inside = yard.type(
        "shell", *INTERACTIVE.split(), "--", "sh", "-c", "scontrol show hostnames | wc -l"
    )
    assert inside.stdout.split() == ["2"]


@pytest.mark.frameworks
def test_one_command_submits_the_pytorch_example(yard: Yard) -> None:
    """`sbatch example_torch/example.sbatch`, here `runyard submit`. A stand-in for conda, which
    cannot be had here, activates the environment that has torch."""
    try:
        torch = ensure_framework("torch")
    except Missing as missing:
        skip_or_fail(str(missing))
    conda = Path(os.environ["HOME"]) / "miniforge3"
    (conda / "etc/profile.d").mkdir(parents=True)
    (conda / "envs/mnist/conda-meta").mkdir(parents=True)
    (conda / "envs/mnist/bin").mkdir()
    python = conda / "envs/mnist/bin/python"
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(str(torch))} "$@"\n')
    python.chmod(0o755)
    activate = f'conda() {{ echo "conda $*"; PATH={shlex.quote(str(torch.parent))}:"$PATH"; }}\n'
    (conda / "etc/profile.d/conda.sh").write_text(activate)
    example = shutil.copytree(ROOT / "examples" / "mnist", yard.project / "mnist")
    file = example / "sweep.yaml"
    command = json.dumps(["python", "${program}", "--made_up", "${args}"])
    text = file.read_text().replace("run_cap: 20", f"run_cap: 1\ncommand: {command}")
    file.write_text(text)
    quiet = program_environment()
    said = replace(yard, project=example).submit(
        "submit", "--memory", "2G", "--agents", "1",
        "--variable", f"PYTHONPYCACHEPREFIX={quiet['PYTHONPYCACHEPREFIX']}",
        "--variable", "OMP_NUM_THREADS=1",
    )  # fmt: skip
    assert yard.ended(said["sweep"], seconds=600)["counts"]["finished"] == 1
    yard.cluster.wait_for(said["jobs"][0]["job_id"], "COMPLETED")
    assert "conda activate mnist" in yard.logs(said)
    (run,) = yard.api.runs(project="mnist")
    config = yard.api.run(run["id"])["config"]
    assert config["optimizer"] in ("adam", "sgd")
    assert config["fc_layer_size"] in (128, 256, 512)
    assert config["dropout"] in (0.3, 0.4, 0.5)
    assert run["summary"]["loss"] > 0
