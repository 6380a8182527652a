"""The neural differential equation of examples/ in jobs: its numbers are those of a laptop."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.conftest import run_runyard
from tests.slurm.workloads import SMALL, cut_off, folder_of, held, place, runs_of
from tests.slurm.yard import Yard
from tests.train.frameworks import ensure_framework, program_environment
from tests.train.results import weights_of

# Compiling takes minutes.
pytestmark = [
    pytest.mark.slurm,
    pytest.mark.frameworks,
    pytest.mark.skipif(
        os.environ.get("RUNYARD_ALL_EXAMPLES") != "1", reason="RUNYARD_ALL_EXAMPLES=1 runs it"
    ),
]

# The first trial of small.yaml.
MODEL = (
    "neural_ode.py", "train-model", "--steps_strategy=[4, 4]", "--lr_strategy=[3e-3, 1e-3]",
    "--width_size=8", "--depth=1", "--batch_size=8", "--print_every=3",
)  # fmt: skip
PART = "model.tree"


@pytest.fixture(scope="module")
def yard(module_environment: pytest.MonkeyPatch, module_yard: Yard) -> Yard:
    environment = program_environment(
        # Compiled without care for speed; and a node's cores do not change the sums.
        XLA_FLAGS="--xla_backend_optimization_level=0 --xla_cpu_multi_thread_eigen=false",
    )
    for name, value in environment.items():
        module_environment.setenv(name, value)
    place(module_yard.project, "neural_ode", ensure_framework("jax"))
    return module_yard


@pytest.fixture(scope="module")
def uncut(yard: Yard) -> Path:
    """The data set, and a model trained on it here, that nobody cut off."""
    folder = yard.project.parent / "uncut"
    python = str(yard.project / ".venv" / "bin" / "python")
    for words in (
        ("neural_ode.py", "make-data", "--train_size=16", "--test_size=8"), MODEL,
    ):  # fmt: skip
        ended = run_runyard(
            "run", "--", python, *words, cwd=yard.project, timeout=1800,
            env={"RUNYARD_CHECKPOINT_DIR": str(folder / "checkpoints")},
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr
    return folder


def test_on_a_node_over_a_cut(yard: Yard, uncut: Path) -> None:
    said = yard.submit("submit", *SMALL, "--chain", "3", "--", *held(*MODEL))
    cut_off(yard, said)
    (run,) = runs_of(yard, said)
    assert weights_of(folder_of(run), PART) == weights_of(uncut, PART)
    rows = list(yard.api.rows(run))
    assert [(row["_step"], row["step"]) for row in rows] == [(0, 0), (3, 3), (4, 0), (7, 3)]


def test_a_sweep_over_lists_on_two_nodes(yard: Yard, uncut: Path) -> None:
    said = yard.submit(
        "sweep", "small.yaml", "--on", "slurm", *SMALL, "--form", "nodes", "--agents", "2"
    )
    runs = {tuple(run["config"]["steps_strategy"]): run for run in runs_of(yard, said)}
    assert set(runs) == {(4, 4), (6, 2)}
    trials = yard.api.sweeps.trials(yard.api.sweeps.find(said["sweep"])["key"])
    assert len({trial["node"] for trial in trials}) == 2
    assert weights_of(folder_of(runs[4, 4]), PART) == weights_of(uncut, PART)
    assert weights_of(folder_of(runs[6, 2]), PART) != weights_of(uncut, PART)
