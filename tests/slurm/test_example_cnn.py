"""The CNN regressor of examples/ on one node and on two, as a sweep, cut off and gone on with.

Its numbers are those of a laptop. `RUNYARD_ALL_EXAMPLES=1` runs all of it; without it, it goes over
two nodes and a cut.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.slurm.workloads import EXAMPLES, SMALL, cut_off, folder_of, held, place, runs_of
from tests.slurm.yard import Yard
from tests.train.frameworks import ensure_framework, program_environment
from tests.train.ranks import run_ranks
from tests.train.results import best_of, weights_of

pytestmark = [pytest.mark.slurm, pytest.mark.frameworks]

LONG = pytest.mark.skipif(
    os.environ.get("RUNYARD_ALL_EXAMPLES") != "1", reason="RUNYARD_ALL_EXAMPLES=1 runs it"
)
CNN = ("--config=laptop", "--scheduler=cosine")


@pytest.fixture(scope="module")
def torch() -> Path:
    return ensure_framework("torch")


@pytest.fixture(scope="module")
def uncut(torch: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The regressor on two ranks of this machine, that nobody cut off."""
    folder = tmp_path_factory.mktemp("uncut")
    words = [*CNN, "--log_to_wandb=False", f"--root_dir={folder}"]
    ended = run_ranks(torch, EXAMPLES / "cnn_regressor" / "train.py", words)
    assert [rank.returncode for rank in ended] == [0, 0], ended[0].stderr + ended[1].stderr
    assert "epoch 4" in ended[0].stdout
    assert ended[1].stdout == ""  # Only rank 0 prints.
    return folder / "expts" / "laptop" / "0"


@pytest.fixture(scope="module")
def yard(module_environment: pytest.MonkeyPatch, module_yard: Yard, torch: Path) -> Yard:
    for name, value in program_environment().items():
        module_environment.setenv(name, value)
    place(module_yard.project, "cnn_regressor", torch)
    return module_yard


def test_the_regressor_over_two_nodes_and_a_cut_ends_like_an_uncut_one(
    yard: Yard, uncut: Path
) -> None:
    said = yard.submit(
        "submit", "--nodes", "2", "--tasks-per-node", "1", *SMALL, "--chain", "3", "--",
        *held("train.py", *CNN),
    )  # fmt: skip
    cut_off(yard, said)
    (run,) = runs_of(yard, said)
    assert yard.logs(said).count("0.001 million parameters on 2 x cpu") == 2
    folder = folder_of(run)
    assert weights_of(folder) == weights_of(uncut)
    assert best_of(folder) == best_of(uncut)
    # One run, each epoch once; it is called like its folder, and by its section's group.
    rows = list(yard.api.rows(yard.api.run(run["id"])))
    assert [row["_step"] for row in rows] == [1, 2, 3, 4]
    assert (run["name"], run["group"]) == (folder.name, "laptop")
    assert run["project"] == "cnn-regressor"


@LONG
@pytest.mark.parametrize(
    ("nodes", "each", "form"), [("1", "2", "srun"), ("1", "2", "torchrun"), ("2", "1", "srun")]
)
def test_the_regressor_has_the_same_numbers_wherever_its_ranks_are(
    yard: Yard, uncut: Path, nodes: str, each: str, form: str
) -> None:
    said = yard.submit(
        "submit", "--distributed", form, "--nodes", nodes, "--tasks-per-node", each, *SMALL, "--",
        "python", "train.py", *CNN,
    )  # fmt: skip
    (run,) = runs_of(yard, said)
    assert weights_of(folder_of(run)) == weights_of(uncut)


@LONG
def test_a_sweep_of_the_regressor_with_two_ranks_a_trial(yard: Yard, torch: Path) -> None:
    said = yard.submit(
        "sweep", "sweep.yaml", "--on", "slurm", "--set", "config=laptop", "--set", "max_epochs=2",
        "--nodes", "2", "--tasks-per-node", "1", *SMALL, "--agents", "2",
    )  # fmt: skip
    runs = {run["name"]: run for run in runs_of(yard, said)}
    assert len(runs) == 6
    assert yard.logs(said).count("on 2 x cpu") == 6
    best = min(runs.values(), key=lambda run: run["summary"]["val_loss"])
    sweep = yard.api.sweeps.find(said["sweep"])
    assert sweep["best"] is not None
    assert sweep["best"]["name"] == best["name"]
    # A trial has the numbers of the same settings, run alone on a laptop.
    config = best["config"]
    alone = yard.project.parent / "alone"
    words = [
        "--config=laptop", "--max_epochs=2", "--log_to_wandb=False", f"--root_dir={alone}",
        f"--lr={config['lr']}", f"--batch_size={config['batch_size']}",
    ]  # fmt: skip
    ended = run_ranks(torch, EXAMPLES / "cnn_regressor" / "train.py", words)
    assert [rank.returncode for rank in ended] == [0, 0], ended[0].stderr
    assert weights_of(folder_of(best)) == weights_of(alone / "expts" / "laptop" / "0")


@LONG
def test_a_sweep_of_the_regressor_that_is_cut_off_ends_like_an_uncut_one(
    yard: Yard, uncut: Path
) -> None:
    """Two trials with two ranks each; the job of either is cut off in its first attempt."""
    file = {
        "program": "train.py", "method": "grid", "command": [*held("${program}"), "${args}"],
        "parameters": {
            "config": {"value": "laptop"}, "scheduler": {"value": "cosine"},
            "lr": {"values": [1e-3, 5e-4]},
        },
    }  # fmt: skip
    yard.write("cut.yaml", json.dumps(file))
    said = yard.submit(
        "sweep", "cut.yaml", "--on", "slurm", "--nodes", "2", "--tasks-per-node", "1", *SMALL,
        "--agents", "2", "--chain", "4",
    )  # fmt: skip
    cut_off(yard, said)
    cut_off(yard, said, link=2)
    runs = {run["config"]["lr"]: run for run in runs_of(yard, said)}
    assert weights_of(folder_of(runs[1e-3])) == weights_of(uncut)
    for run in runs.values():
        assert run["project"] == "cnn-regressor"  # As runyard.yaml says.
        assert [row["_step"] for row in yard.api.rows(run)] == [1, 2, 3, 4]
