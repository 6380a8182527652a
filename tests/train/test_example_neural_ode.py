"""The neural differential equation: data set and model as artifacts, cut off and resumed."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from runyard.home import Home
from runyard.train import folders
from tests.conftest import RunRunyard
from tests.live.programs import curves, list_runs
from tests.train.frameworks import ROOT, program_environment

# Compiling takes a minute of two cores, five times over.
pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.live,
    pytest.mark.skipif(
        not os.environ.get("RUNYARD_ALL_EXAMPLES"), reason="RUNYARD_ALL_EXAMPLES=1 runs it"
    ),
]

EXAMPLE = ROOT / "examples" / "neural_ode" / "neural_ode.py"
SMALL = (
    "--steps_strategy=[4, 4]", "--lr_strategy=[3e-3, 1E-3]", "--width_size=8", "--depth=1",
    "--batch_size=8", "--print_every=3",
)  # fmt: skip


def test_from_the_data_set_to_the_model_and_over_a_cut(
    runyard: RunRunyard, state_folder: Home, jax_python: Path, tmp_path: Path
) -> None:
    def run(*words: str, **more: str) -> int:
        # Compiled once, without care for speed, and used by the next one again.
        environment = program_environment(
            XLA_FLAGS="--xla_backend_optimization_level=0",
            JAX_COMPILATION_CACHE_DIR=str(tmp_path / "compiled"),
            JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0",
            WANDB_PROJECT="neural-ode",
            **more,
        )
        ended = runyard(
            "run", "--", str(jax_python), str(EXAMPLE), *words,
            env=environment, cwd=tmp_path, timeout=900,
        )  # fmt: skip
        assert ended.returncode in (0, 75), ended.stderr
        return ended.returncode

    assert run("make-data", "--train_size=16", "--test_size=8") == 0
    assert run("train-model", *SMALL, RUNYARD_CHECKPOINT_DIR=str(tmp_path / "uncut")) == 0

    (tmp_path / "stop").touch()
    cut = {"RUNYARD_CHECKPOINT_DIR": str(tmp_path / "cut"), "WANDB_RUN_ID": "thesame"}
    for _ in range(2):
        stop = str(tmp_path / "stop")
        assert run("train-model", *SMALL, "--watch_run", RUNYARD_STOP_FILE=stop, **cut) == 75
    assert [entry.step for entry in folders.saved(tmp_path / "cut")] == [1, 2]
    assert run("train-model", *SMALL, **cut) == 0
    models = [folders.saved(tmp_path / name)[-1].path / "model.tree" for name in ("uncut", "cut")]
    digests = [hashlib.sha256(model.read_bytes()).hexdigest() for model in models]
    assert digests[0] == digests[1]

    runs = {run["id"]: run for run in list_runs(runyard)}
    uncut = next(
        run for name, run in runs.items() if name != "thesame" and "width_size" in run["config"]
    )
    assert uncut["config"]["lr_strategy"] == [0.003, 0.001]
    assert uncut["config"]["steps_strategy"] == [4, 4]
    # Every third step and the last of each phase; the server's own step goes on counting.
    logged, resumed = curves(state_folder, uncut["id"]), curves(state_folder, "thesame")
    assert logged["step"]["steps"] == [0, 3, 4, 7]
    assert logged["step"]["values"] == [0, 3, 0, 3]
    assert resumed["loss_test"]["values"] == logged["loss_test"]["values"]
    assert "computation time" in logged
    # The histograms that were asked for have the names of the model's own tree.
    (with_names,) = [run for run in runs.values() if run["id"] == "thesame"]
    assert "parameters/rhs.layers.0.weight" in with_names["summary"]
    assert "gradients/rhs.layers.1.bias" in with_names["summary"]
    assert "parameters/rhs.layers.0.weight" not in uncut["summary"]
