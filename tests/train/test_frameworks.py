"""torch's and JAX's own objects in checkpoints, and their arrays by name.

Each claim is a line of the program that is run: starting torch costs more than all of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.train.frameworks import run_program
from tests.train.warm import WarmPython

pytestmark = pytest.mark.frameworks

PROGRAMS = Path(__file__).parent / "programs"


def test_states_of_torch(tmp_path: Path, warm: WarmPython) -> None:
    ended = warm.run(PROGRAMS / "torch_states.py", str(tmp_path))
    assert ended.returncode == 0, ended.stderr
    assert "all well" in ended.stdout


def test_states_of_jax(tmp_path: Path, jax_python: Path) -> None:
    ended = run_program(jax_python, PROGRAMS / "jax_states.py", str(tmp_path))
    assert ended.returncode == 0, ended.stderr
    assert "all well" in ended.stdout


# CI has no GPU: what torch would be asked for is recorded. NCCL itself was tried on an H200.
ON_GPUS = """
import os, torch, torch.distributed as group
from runyard import train
asked = []
torch.cuda.is_available, torch.cuda.device_count = lambda: True, lambda: 4
torch.cuda.set_device = lambda number: asked.append(number)
group.init_process_group = lambda backend, **more: asked.append(backend)
ranks = train.distributed()
assert asked == [3, "cpu:gloo,cuda:nccl"], asked
assert str(ranks.device) == "cuda:3"
torch.nn.Linear.to = lambda model, device: model
torch.nn.parallel.DistributedDataParallel = lambda model, device_ids: device_ids
assert ranks.wrap(torch.nn.Linear(1, 1)) == [3]
print("all well")
"""


def test_ranks_with_gpus_talk_by_nccl_each_on_its_own_gpu(tmp_path: Path, warm: WarmPython) -> None:
    program = tmp_path / "on_gpus.py"
    program.write_text(ON_GPUS)
    slurm = {
        "SLURM_PROCID": "7", "SLURM_STEP_NUM_TASKS": "8", "SLURM_LOCALID": "3",
        "SLURM_STEP_TASKS_PER_NODE": "4(x2)", "SLURM_STEP_NODELIST": "nid[001-002]",
    }  # fmt: skip
    ended = warm.run(program, **slurm)
    assert ended.returncode == 0, ended.stderr
    assert "all well" in ended.stdout
