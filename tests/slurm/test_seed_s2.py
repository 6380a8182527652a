"""The walk-through of W&B sweeps on a Slurm cluster, typed as its document prints it.

What stands in capitals here is the document's own text. Its cloud, its conda and its data cannot be
had here; a partition called `aws` can.
"""

from __future__ import annotations

import getpass
import json
import os
import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.sweeping import with_python
from tests.slurm.yard import Yard

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
        f"config_dict, project_name = {sweep_of([1, 2, 3, 4])!r}, 'walk'\n{NODE_LIST}{AGENTS}"
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
        (lr, lr * 2, "finished") for lr in (1, 2, 3, 4)
    ]
    # No run but the trials, and an agent on each node.
    assert len(yard.api.runs(project="walk")) == 4
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


def test_the_interactive_job_is_asked_for_in_the_same_words(yard: Yard) -> None:
    asked = yard.type("shell", "--dry-run", *INTERACTIVE.split()).stdout.splitlines()[0]
    for words in ("--nodes=2", "--ntasks-per-node=1", "--time=0-01:00:00", "--partition=aws"):
        assert words in asked.split()
    inside = yard.type(
        "shell", *INTERACTIVE.split(), "--", "sh", "-c", "scontrol show hostnames | wc -l"
    )
    assert inside.stdout.split() == ["2"]
