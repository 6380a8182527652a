"""torch over two nodes, by torchrun and by srun: real process groups, on the CPU with gloo."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.slurm.yard import Yard
from tests.train.frameworks import ensure_framework, program_environment

pytestmark = [pytest.mark.slurm, pytest.mark.frameworks]

REDUCES = """\
import os, sys
import torch, torch.distributed as dist
dist.init_process_group("gloo")
value = torch.tensor([dist.get_rank() + 1.0])
dist.all_reduce(value)
words = ["rank", dist.get_rank(), "of", dist.get_world_size(), "sum", int(value), *sys.argv[1:]]
# In one piece: the ranks of a node print into one pipe.
sys.stdout.write(" ".join(map(str, words)) + "\\n")
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def torch() -> Path:
    return ensure_framework("torch")


@pytest.fixture(scope="module")
def yard(module_environment: pytest.MonkeyPatch, module_yard: Yard) -> Yard:
    for name, value in program_environment().items():
        module_environment.setenv(name, value)
    # Jobs inherit it, and torch takes three times as long to start where nothing is kept compiled.
    module_environment.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    module_yard.write("reduces.py", REDUCES)
    return module_yard


@pytest.mark.parametrize(
    ("form", "gpus", "ranks"), [("torchrun", 2, ["0", "1", "2", "3"]), ("srun", 0, ["0", "1"])]
)
def test_a_process_group_over_two_nodes(
    yard: Yard, torch: Path, form: str, gpus: int, ranks: list[str]
) -> None:
    """torchrun starts a process for each GPU of a node, which the rig names as real ones are."""
    said = yard.submit(
        "submit", "--distributed", form, "--nodes", "2", "--gpus", str(gpus), "--cpus", "1", "--",
        str(torch), "reduces.py",
    )  # fmt: skip
    yard.cluster.wait_for(said["jobs"][0]["job_id"], "COMPLETED", 180)
    size = len(ranks)
    assert (
        sorted(re.findall(rf"rank (\d) of {size} sum {size * (size + 1) // 2}", yard.logs(said)))
        == ranks
    )


# DDP over twenty steps. In one trial a rank is killed in the middle of the first attempt: a task of
# srun, torchrun's own process (whose worker is then an orphan), or a worker, which torchrun mends.
TRAINS = """\
import os, signal, sys, time
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
form, lr = sys.argv[1], int(sys.argv[2].partition("=")[2])
dist.init_process_group("gloo")
rank, folder = dist.get_rank(), os.environ["RUNYARD_CHECKPOINT_DIR"]
first = os.environ["RUNYARD_ATTEMPT"] == "1"
old = [one[4:] for one in os.listdir(folder) if one.startswith("pid-")]
if rank == 0 and not first:
    print("lr", lr, "went on, left", [one for one in old if os.path.exists(f"/proc/{one}")])
if first:
    open(f"{folder}/pid-{os.getpid()}", "w").close()
torch.manual_seed(rank)
model = DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr / 100)
for step in range(20):
    if step == 10 and rank == 1:
        if first and lr == 3:
            print("lr 3 is killed at", time.time(), flush=True)
            os.kill(os.getppid() if form == "torchrun" else os.getpid(), signal.SIGKILL)
            time.sleep(600)  # An orphan, that does not end by itself.
        if form == "torchrun" and lr == 4 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
            os.kill(os.getpid(), signal.SIGKILL)
    optimizer.zero_grad()
    loss = (model(torch.randn(8, 4)) - 1).square().mean()
    loss.backward()
    optimizer.step()
weights = [torch.zeros(1, 4) for _ in range(dist.get_world_size())]
dist.all_gather(weights, model.module.weight.detach())
same = bool((weights[0] == weights[1]).all())
print("rank", rank, "of", dist.get_world_size(), "lr", lr, "same", same)
dist.destroy_process_group()
"""


@pytest.mark.skipif(
    os.environ.get("RUNYARD_LONG_JOBS") != "1",
    reason="RUNYARD_LONG_JOBS=1: torch starts twenty times; test_ranks.py does it without torch",
)
@pytest.mark.parametrize("form", ["torchrun", "srun"])
def test_a_sweep_of_four_trials_in_which_a_rank_is_killed(
    yard: Yard, torch: Path, form: str
) -> None:
    yard.write("trains.py", TRAINS)
    file = {
        "program": "trains.py",
        "method": "grid",
        "command": [str(torch), "${program}", form, "${args}"],
        "parameters": {"lr": {"values": [1, 2, 3, 4]}},
        "runyard": {"retries": {"program": 1}},
    }
    yard.write("sweep.yaml", json.dumps(file))
    said = yard.submit(
        "sweep", "sweep.yaml", "--on", "slurm", "--distributed", form, "--nodes", "2",
        "--agents", "2",
    )  # fmt: skip
    assert yard.ended(said["sweep"], 600)["counts"]["finished"] == 4, yard.logs(said)
    logs = yard.logs(said)
    found = re.findall(r"rank (\d) of 2 lr (\d) same True", logs)
    assert sorted(found) == [(rank, lr) for rank in "01" for lr in "1234"], logs
    assert re.findall(r"lr (\d) went on, left \[\]", logs) == ["3"]
    tried = {
        trial["values"]["lr"]: yard.api.run(trial["id"])["attempts"]
        for trial in yard.api.sweeps.trials(yard.api.sweeps.find(said["sweep"])["key"])
    }
    # A worker that dies is torchrun's own affair.
    assert {lr: len(attempts) for lr, attempts in tried.items()} == {1: 1, 2: 1, 3: 2, 4: 1}
    (killed_at,) = re.findall(r"lr 3 is killed at (\S+)", logs)
    after = (tried[3][0]["ended_at"] or 0.0) - float(killed_at)
    print(f"{form}: the attempt ended {after:.2f} s after its rank was killed")
    assert 0 < after < 10  # By the recorded times: the guide promises it.
