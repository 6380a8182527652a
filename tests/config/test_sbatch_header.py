"""Job scripts that people have, translated into runyard.yaml."""

from __future__ import annotations

from typing import Any

import pytest

from runyard.config.sbatch_header import translate

# As the seed groups wrote them, in their own words and with their own mistakes.
SCRIPT = """\
#!/usr/bin/env zsh
#SBATCH --job-name=train
#SBATCH -t 2-00:00
#SBATCH --gres=gpu:v100l:2   # two of them
#SBATCH --mem=32000M
#SBATCH -c 8 --account=def-me
#SBATCH --array=0-19%4
#SBATCH --output=logs/%j.out
#SBATCH --mail-type=BEGIN,END --mail-user=me@example.org
#SBATCH --hint=nomultithread

module load python/3.9 cuda/11.4
source $HOME/env/bin/activate
export WANDB_API_KEY=0123456789
export OMP_NUM_THREADS=4
cd $SLURM_SUBMIT_DIR
# SBATCH --time=9:00:00
srun -l python train.py --data $SLURM_TMPDIR/d --name "a b" \\
    --x 1,2
"""


def test_a_script_of_today_becomes_settings() -> None:
    found = translate(SCRIPT)
    assert found.settings == {
        "name": "train",
        "resources.time": "2d",
        "resources.gpus": 2,
        "resources.gpu_type": "v100l",
        "resources.memory": "32000M",
        "resources.cpus": 8,
        "resources.account": "def-me",
        "agents.count": 20,
        "agents.at_once": 4,
        "resources.mail": ["BEGIN", "END"],
        "resources.mail_to": "me@example.org",
        "resources.extra": ["--hint=nomultithread"],
        "environment.modules": ["python/3.9", "cuda/11.4"],
        "environment.kind": "venv",
        "environment.path": "${HOME}/env",
        "environment.variables": {"OMP_NUM_THREADS": "4"},
        "command": "python train.py --data '${SLURM_TMPDIR}/d' --name 'a b' --x 1,2",
    }
    assert found.notes == [
        "--output is left out: runyard keeps the logs",
        "WANDB_API_KEY is left out: `runyard login` keeps keys where jobs find them",
    ]


@pytest.mark.parametrize(
    ("line", "settings"),
    [
        ("--time=60", {"resources.time": "1h"}),  # Slurm's bare number is minutes.
        ("--time=1:30", {"resources.time": "1m30s"}),
        ("--time 0-01:00:00", {"resources.time": "1h"}),
        ("-t10", {"resources.time": "10m"}),
        ("--mem=4G", {"resources.memory": "4G"}),
        ("--mem=8000", {"resources.memory": "8000M"}),
        ("--mem=0", {"resources.memory": 0}),
        ("--mem-per-cpu=2G -c 4", {"resources.memory": "8G", "resources.cpus": 4}),
        ("--mem-per-gpu=10G", {"resources.memory_per_gpu": "10G"}),
        ("--gres=gpu", {"resources.gpus": 1}),
        ("--gres=gpu:1", {"resources.gpus": 1}),
        ("--gres=gpu:volta:1", {"resources.gpus": 1, "resources.gpu_type": "volta"}),
        ("--gpus-per-node=h100:4", {"resources.gpus": 4, "resources.gpu_type": "h100"}),
        ("--array=1-30%5", {"agents.count": 30, "agents.at_once": 5}),
        ("--array=1,3,5-9:2", {"agents.count": 5}),
        ("--array=7", {"agents.count": 1}),
        ("-N 2 -n 8", {"resources.nodes": 2, "resources.tasks_per_node": 4}),
        ("-n 1", {}),
        ("-A m1 -q regular -C gpu&hbm80g",
         {"resources.account": "m1", "resources.qos": "regular",
          "resources.constraint": "gpu&hbm80g"}),
        ("--job-name=my run", {"name": "my"}),
    ],
)  # fmt: skip
def test_each_way_to_write_an_option(line: str, settings: dict[str, Any]) -> None:
    found = translate(f"#!/bin/bash\n#SBATCH {line}\n")
    assert (found.settings, found.notes) == (settings, [])


@pytest.mark.parametrize("line", ["--time=soon", "--gres=gpu:a:b:2", "--array=a-b", "-n 3 -N 2"])
def test_what_cannot_be_read_is_named(line: str) -> None:
    found = translate(f"#SBATCH {line}\n")
    assert len(found.notes) == 1
    assert not {"resources.time", "resources.gpus", "agents.count"} & set(found.settings)


@pytest.mark.parametrize(
    ("line", "settings"),
    [
        ("conda activate torch", {"environment.kind": "conda", "environment.name": "torch"}),
        ("source activate torch", {"environment.kind": "conda", "environment.name": "torch"}),
        (". ./env/bin/activate", {"environment.kind": "venv", "environment.path": "./env"}),
        ("wandb agent me/project/abc123", {"sweep_id": "me/project/abc123"}),
        ("wandb agent $1", {}),
        ("torchrun --nproc_per_node 4 a.py", {"command": "torchrun --nproc_per_node 4 a.py"}),
        ("echo 'unclosed", {}),
        ("export A=$(date)", {}),
    ],
)
def test_lines_of_the_body(line: str, settings: dict[str, Any]) -> None:
    assert translate(f"#!/bin/bash\n#SBATCH -t 1\n{line}\n").settings == {
        "resources.time": "1m",
        **settings,
    }
