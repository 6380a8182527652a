"""torch over two nodes, by torchrun and by srun: real process groups, on the CPU with gloo."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slurm.cluster import SlurmCluster
from tests.slurm.yard import Yard, open_yard
from tests.train.frameworks import ensure_framework, program_environment

pytestmark = [pytest.mark.slurm, pytest.mark.frameworks]

REDUCES = """\
import os, sys
import torch, torch.distributed as dist
dist.init_process_group("gloo")
value = torch.tensor([dist.get_rank() + 1.0])
dist.all_reduce(value)
print("rank", dist.get_rank(), "of", dist.get_world_size(), "sum", int(value), *sys.argv[1:])
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def torch() -> Path:
    return ensure_framework("torch")


@pytest.fixture(scope="module")
def yard(
    tmp_path_factory: pytest.TempPathFactory,
    module_environment: pytest.MonkeyPatch,
    slurm_cluster: SlurmCluster,
) -> Iterator[Yard]:
    for name, value in program_environment().items():
        module_environment.setenv(name, value)
    # Jobs inherit it, and torch takes three times as long to start where nothing is kept compiled.
    module_environment.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    with open_yard(tmp_path_factory.mktemp("torch"), module_environment, slurm_cluster) as opened:
        opened.write("reduces.py", REDUCES)
        yield opened


@pytest.mark.parametrize("form", ["torchrun", "srun"])
def test_a_process_group_over_two_nodes(yard: Yard, torch: Path, form: str) -> None:
    said = yard.submit(
        "submit", "--distributed", form, "--nodes", "2", "--", str(torch), "reduces.py"
    )
    yard.cluster.wait_for(said["jobs"][0]["job_id"], "COMPLETED", 120)
    assert sorted(re.findall(r"rank (\d) of 2 sum 3", yard.logs(said))) == ["0", "1"]


@pytest.mark.skipif(
    os.environ.get("RUNYARD_LONG_JOBS") != "1",
    reason="RUNYARD_LONG_JOBS=1: torch starts eight times; test_ranks.py has a sweep without it",
)
def test_a_sweep_of_four_trials_by_torchrun(yard: Yard, torch: Path) -> None:
    file = {
        "program": "reduces.py",
        "method": "grid",
        "command": [str(torch), "${program}", "${args}"],
        "parameters": {"lr": {"values": [1, 2, 3, 4]}},
    }
    yard.write("sweep.yaml", json.dumps(file))
    said = yard.submit(
        "sweep", "sweep.yaml", "--on", "slurm", "--distributed", "torchrun", "--nodes", "2",
        "--agents", "2",
    )  # fmt: skip
    assert yard.ended(said["sweep"], 180)["counts"]["finished"] == 4
    found = re.findall(r"rank (\d) of 2 sum 3 --lr=(\d)", yard.logs(said))
    assert sorted(found) == [(rank, lr) for rank in "01" for lr in "1234"]
