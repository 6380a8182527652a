"""Job scripts that people have, translated into runyard.yaml."""

from __future__ import annotations

from typing import Any

import pytest

from runyard.schedulers.slurm.script_reader import translate

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
        ("wandb agent --count 4 me/project/abc123",
         {"sweep_id": "me/project/abc123", "agents.trials_each": 4}),
        ("wandb agent me/project/abc123 --count 4",
         {"sweep_id": "me/project/abc123", "agents.trials_each": 4}),
        ("srun wandb agent me/project/abc123", {"sweep_id": "me/project/abc123"}),
        ("wandb agent $1", {}),
        ("wandb agent '<your-sweep-id>'", {}),
        ("srun -n 2 --cpu-bind none python a.py --x 1", {"command": "python a.py --x 1"}),
        ("srun --ntasks=1 --gres gpu:1 python a.py", {"command": "python a.py"}),
        ("CUDA_VISIBLE_DEVICES=0 OMP=2 python a.py --x 1",
         {"command": "python a.py --x 1",
          "environment.variables": {"CUDA_VISIBLE_DEVICES": "0", "OMP": "2"}}),
        ("time python -u a.py --x 1", {"command": "python -u a.py --x 1"}),
        ("nohup python a.py --x 1 &", {"command": "python a.py --x 1"}),
        ("python a.py --x 1 > out.txt 2>&1", {"command": "python a.py --x 1"}),
        ("python a.py --x 1 2>&1 | tee out.txt", {"command": "python a.py --x 1"}),
        ("cd code && python a.py --x 1", {"command": "python a.py --x 1"}),
        ("uv run python a.py --x 1", {"command": "python a.py --x 1"}),
        ("uv run a.py --x 1", {"command": "python a.py --x 1"}),
        ("poetry run python a.py --x 1", {"command": "python a.py --x 1"}),
        ("conda run -n torch python a.py --x 1",
         {"command": "python a.py --x 1", "environment.kind": "conda",
          "environment.name": "torch"}),
        ("apptainer exec --nv -B /data:/data image.sif python a.py --x 1",
         {"command": "python a.py --x 1", "environment.kind": "apptainer",
          "environment.image": "image.sif"}),
        ("bash run.sh --x 1", {"command": "bash run.sh --x 1"}),
        ("./run.sh --x 1", {"command": "./run.sh --x 1"}),
        ("X=5\npython a.py --x $X --y ${X}", {"command": "python a.py --x 5 --y 5"}),
        ("X=$1\npython a.py --x $X", {}),
        ("X=$( srun hostname | head -n 1)\npython a.py --x $X", {}),
        ("bands=( 1 2 )\npython a.py", {"command": "python a.py"}),
        ("virtualenv $SLURM_TMPDIR/env\nsource $SLURM_TMPDIR/env/bin/activate",
         {"environment.kind": "venv", "environment.build": True}),
        ("python a.py --x $SLURM_ARRAY_TASK_ID",
         {"command": "python a.py --x '${SLURM_ARRAY_TASK_ID}'"}),
        ('python a.py --x 1 "$@"', {"command": "python a.py --x 1"}),
        ("python setup.py install\npip install x\npython -m pip install y\npython a.py --x 1",
         {"command": "python a.py --x 1"}),
        ("python -c 'import torch'\npython a.py --x 1", {"command": "python a.py --x 1"}),
        ("torchrun --nproc_per_node 4 a.py", {"command": "torchrun --nproc_per_node 4 a.py"}),
        ("echo 'unclosed", {}),
        ("export A=$(date)", {}),
    ],
)  # fmt: skip
def test_lines_of_the_body(line: str, settings: dict[str, Any]) -> None:
    assert translate(f"#!/bin/bash\n#SBATCH -t 1\n{line}\n").settings == {
        "resources.time": "1m",
        **settings,
    }


@pytest.mark.parametrize(
    "line",
    ["--account=def-someuser", "-A <account>", "--account=YOUR_ACCOUNT", "--account=xxx",
     "--partition=your-partition", "--account=def-yourpi", "--account=$ACCOUNT", "-A CHANGEME",
     "--account=account_name", "--mail-user=your.email@example.com", "--qos=[qos]"],
)  # fmt: skip
def test_a_placeholder_is_left_out_and_named(line: str) -> None:
    found = translate(f"#SBATCH {line}\n")
    assert found.settings == {}
    (note,) = found.notes
    assert "a placeholder" in note


@pytest.mark.parametrize("value", ["def-youngj", "rrg-kevinlb", "m1234", "my-lab", "account1"])
def test_the_name_of_an_account_is_no_placeholder(value: str) -> None:
    assert translate(f"#SBATCH -A {value}\n").settings == {"resources.account": value}


@pytest.mark.parametrize(
    ("header", "settings"),
    [
        ("-N 2", {"agents.count": 2, "agents.form": "nodes"}),
        ("-N 2 --ntasks-per-node=1", {"agents.count": 2, "agents.form": "nodes"}),
        ("-N 1 -n 4", {"agents.count": 4}),
        ("-N 1", {}),
        ("-N 2 --array=1-3", {"agents.count": 6, "agents.form": "nodes"}),
    ],
)
def test_the_nodes_of_an_agents_script_are_its_agents(
    header: str, settings: dict[str, Any]
) -> None:
    """One agent runs on each node; a trial is not spread over them."""
    found = translate(f"#SBATCH {header}\nsrun wandb agent ada/birds/abc\n")
    assert found.settings == {"sweep_id": "ada/birds/abc", **settings}


@pytest.mark.parametrize(("header", "settings"), [("-N 2", {}), ("-n 4", {"resources.cpus": 4})])
def test_without_srun_a_script_has_one_agent(header: str, settings: dict[str, Any]) -> None:
    found = translate(f"#SBATCH {header}\nwandb agent ada/birds/abc\n")
    assert found.settings == {"sweep_id": "ada/birds/abc", **settings}


def test_variables_that_a_script_leaves_to_whoever_starts_it_are_named() -> None:
    found = translate("#SBATCH -t 1\nLR=$1\npython a.py --lr $LR\n")
    assert found.notes == [
        "`python a.py --lr $LR` is left out: it needs what the script is given ($1); write command:"
    ]


def test_torchrun_over_nodes_is_left_to_runyard() -> None:
    found = translate(
        "#SBATCH -N 2\nhead=$(hostname)\n"
        "srun torchrun --nnodes 2 --rdzv_endpoint $head:29500 train.py --lr 0.1\n"
    )
    assert found.settings == {
        "resources.nodes": 2, "distributed": "torchrun", "command": "python train.py --lr 0.1",
    }  # fmt: skip


@pytest.mark.parametrize(
    "option",
    [
        "--array=1-9:0",
        "--gpus-per-node={0}",
        "--nodes={0}",
        "--time={0}",
        "--mem={0}",
        "--array=1-{0}",
    ],
)
def test_numbers_that_mean_nothing_are_left_to_the_reader(option: str) -> None:
    translate(f"#!/bin/sh\n#SBATCH {option.format('7' * 5_000)}\npython a.py\n")
