"""W&B's own ways inside a job, with nothing of runyard's in it: `wandb agent` under `srun`, and
rank 0 that asks for the trial and broadcasts it."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from pathlib import Path

import pytest

from runyard.shapes.sweeps import Sweep
from tests.slurm.yard import Yard
from tests.train.frameworks import ensure_framework, program_environment

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(
        os.environ.get("RUNYARD_LONG_JOBS") != "1",
        reason="RUNYARD_LONG_JOBS=1: tests/live has wandb's agent without Slurm, and tests/train "
        "ranks that broadcast",
    ),
]

# The first trial of each node waits for that of the other one.
LOGS = """\
import os, pathlib, time, wandb
run = wandb.init()
pathlib.Path("here-" + os.environ["SLURMD_NODENAME"]).touch()
while len(list(pathlib.Path().glob("here-*"))) < 2:
    time.sleep(0.05)
run.log({"loss": run.config.lr * 2})
print("trial", run.config.lr, "on", os.environ["SLURMD_NODENAME"], flush=True)
run.finish()
"""


@pytest.fixture(scope="module")
def yard(module_yard: Yard) -> Yard:
    return module_yard


def made(yard: Yard, program: str, lrs: list[int]) -> Sweep:
    file = {"program": program, "method": "grid", "metric": {"name": "loss", "goal": "minimize"},
            "command": [sys.executable, "${program}"],
            "parameters": {"lr": {"values": lrs}}}  # fmt: skip
    yard.write("sweep.yaml", json.dumps(file))
    told = json.loads(yard.type("sweep", "--no-run", "--json", "sweep.yaml").stdout)
    return yard.api.sweeps.sweep(told["key"])


def submit(yard: Yard, line: str, **variables: str) -> str:
    """As somebody would write it who knows W&B and Slurm: two nodes, a task on each."""
    wandb = dict(re.findall(r"export (\w+)=(\S+)", yard.type("env").stdout))
    exports = "".join(
        f"export {name}={shlex.quote(value)}\n"
        for name, value in {**{k: shlex.split(v)[0] for k, v in wandb.items()}, **variables}.items()
    )
    script = f"#!/bin/bash\n{exports}cd {shlex.quote(str(yard.project))}\n{line}\n"
    return yard.cluster.submit(script, "--nodes=2", "--ntasks-per-node=1")


def test_an_agent_of_wandbs_on_each_node(yard: Yard) -> None:
    yard.write("logs.py", LOGS)
    sweep = made(yard, "logs.py", [1, 2, 3, 4])
    path = f"{sweep['entity']}/{sweep['project']}/{sweep['id']}"
    job = submit(yard, f"srun {shlex.quote(sys.executable)} -m wandb agent {path}")
    yard.cluster.wait_for(job, "COMPLETED", 180)
    done = re.findall(r"trial (\d) on (n\d)", yard.cluster.output(job))
    assert sorted(lr for lr, _ in done) == ["1", "2", "3", "4"]
    trials = yard.api.sweeps.trials(sweep["key"])
    assert sorted((one["values"]["lr"], one["value"], one["state"]) for one in trials) == [
        (lr, lr * 2, "finished") for lr in (1, 2, 3, 4)
    ]
    # Each node had an agent of its own.
    assert len({one["agent"] for one in trials}) == 2 == len({node for _, node in done})


BROADCASTS = """\
import os, sys
import torch.distributed as dist
import wandb

os.environ["RANK"] = os.environ["SLURM_PROCID"]
os.environ["WORLD_SIZE"] = os.environ["SLURM_NTASKS"]
dist.init_process_group("gloo")

def train():
    run = wandb.init() if dist.get_rank() == 0 else None
    told = [dict(run.config) if run else None]
    dist.broadcast_object_list(told)
    print("rank", dist.get_rank(), "trains with", told[0]["lr"], flush=True)
    if run:
        run.log({"loss": told[0]["lr"] * 2})
        run.finish()

if dist.get_rank() == 0:
    wandb.agent(sys.argv[1], function=train, count=1)
else:
    train()
dist.destroy_process_group()
"""


@pytest.mark.frameworks
def test_rank_0_asks_and_broadcasts(yard: Yard) -> None:
    torch: Path = ensure_framework("torch")
    yard.write("broadcasts.py", BROADCASTS)
    sweep = made(yard, "broadcasts.py", [7])
    path = f"{sweep['entity']}/{sweep['project']}/{sweep['id']}"
    quiet = {name: program_environment()[name] for name in ("PYTHONPYCACHEPREFIX",)}
    job = submit(
        yard, f"srun {shlex.quote(str(torch))} broadcasts.py {path}", MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(20000 + os.getpid() % 9000), **quiet,
    )  # fmt: skip
    yard.cluster.wait_for(job, "COMPLETED", 400)
    said = re.findall(r"rank (\d) trains with (\d)", yard.cluster.output(job))
    assert sorted(said) == [("0", "7"), ("1", "7")]
    (trial,) = yard.api.sweeps.trials(sweep["key"])
    assert (trial["state"], trial["value"], trial["attempts"]) == ("finished", 14, 1)
