"""The neural differential equation in a notebook: a real kernel, the stock client, our server."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from runyard.client.discover import ensure_server
from runyard.home import Home
from tests.conftest import RunRunyard
from tests.live.programs import curves, list_runs
from tests.live.sweeping import with_python
from tests.train.frameworks import ROOT, program_environment

pytestmark = [pytest.mark.frameworks, pytest.mark.live]

NOTEBOOK = ROOT / "examples" / "neural_ode" / "notebook.ipynb"
RUNNER = Path(__file__).parent / "programs" / "run_notebook.py"


def test_from_the_data_set_to_a_sweep_in_a_notebook(
    runyard: RunRunyard, state_folder: Home, notebook_python: Path, tmp_path: Path
) -> None:
    file = tmp_path / "notebook.ipynb"
    text, usual = NOTEBOOK.read_text(), "STEPS, PRINT_EVERY, TRIALS = (500, 500), 100, 10"
    assert usual in text
    file.write_text(text.replace(usual, "STEPS, PRINT_EVERY, TRIALS = (8, 5), 3, 2"))
    done = subprocess.run(
        [notebook_python, RUNNER, file], cwd=tmp_path, capture_output=True, text=True,
        env=program_environment(**with_python()), timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr

    runs: list[dict[str, Any]] = sorted(list_runs(runyard), key=lambda run: run["created_at"])
    made, plain, watched, *trials = runs
    assert {run["state"] for run in runs} == {"finished"}
    assert {run["project"] for run in runs} == {"neural-ode"}
    assert (made["job_type"], made["config"]["train_size"]) == ("create-dataset", 256)

    # Every third step and the last of each phase; the server's own step goes on counting.
    logged = curves(state_folder, plain["id"])
    assert logged["loss_test"]["steps"] == [0, 3, 6, 7, 8, 11, 12]
    assert logged["step"]["values"] == [0, 3, 6, 7, 0, 3, 4]
    assert plain["config"]["steps_strategy"] == [8, 5]
    assert plain["config"]["lr_strategy"] == [0.003, 0.003]
    assert plain["summary"]["loss_train"] > 0

    # Distributions only where they are asked for, under their names in the model.
    distributions = {
        name: value
        for name, value in watched["summary"].items()
        if isinstance(value, dict) and value.get("_type") == "histogram"
    }
    parts = [f"layers.{number}.{part}" for number in range(3) for part in ("bias", "weight")]
    assert sorted(distributions) == sorted(
        f"{kind}/{part}" for kind in ("gradients", "parameters", "updates") for part in parts
    )
    assert sum(distributions["parameters/layers.1.weight"]["values"]) == 20 * 20
    assert not [name for name in plain["summary"] if name.startswith(("parameters", "gradients"))]

    # A sweep of two trials, whose values won over the function's defaults.
    assert len(trials) == 2
    for run in trials:
        assert run["config"]["lr_strategy"] in ([0.003, 0.003], [0.01, 0.003])
        assert run["config"]["width_size"] in (20, 64, 150)
    (sweep,) = ensure_server(state_folder).api.sweeps.sweeps()
    assert (sweep["method"], sweep["counts"]["finished"]) == ("random", 2)
    best = min(trials, key=lambda run: run["summary"]["loss_test"])
    cells = json.loads(file.read_text())["cells"]
    printed = "".join("".join(part.get("text", "")) for part in cells[-1]["outputs"])
    assert f"best: {best['name']}" in printed
