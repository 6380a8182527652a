"""The small examples: a stock wandb script, a farm, and Lightning, as their READMEs say."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.conftest import RunRunyard
from tests.live.programs import list_runs
from tests.train.frameworks import ROOT, program_environment, run_program

EXAMPLES = ROOT / "examples"
pytestmark = pytest.mark.live


@pytest.fixture
def farm(tmp_path: Path) -> Path:
    folder = shutil.copytree(EXAMPLES / "gridworld", tmp_path / "gridworld")
    tasks = folder / "tasks.txt"
    tasks.write_text(tasks.read_text().replace("python ", f"{sys.executable} "))
    return folder


def test_the_stock_script_has_nothing_of_ours() -> None:
    text = (EXAMPLES / "spirals" / "train.py").read_text()
    assert "runyard" not in text
    assert set(re.findall(r"^(?:import|from) (\w+)", text, re.M)) == {
        "argparse", "itertools", "numpy", "wandb",
    }  # fmt: skip


def test_a_farm_of_reinforcement_learning(runyard: RunRunyard, farm: Path) -> None:
    ended = runyard(
        "farm", "tasks.txt", "-j", "3", "--metric", "mean_steps", "--goal", "minimize", "-q",
        cwd=farm, timeout=300,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    runs = list_runs(runyard)
    assert len(runs) == 6
    # By chance the goal is 400 steps away or more; who has learnt needs a tenth of it.
    assert max(run["summary"]["mean_steps"] for run in runs) < 100
    assert {run["config"]["alpha"] for run in runs} == {0.1, 0.5}


@pytest.mark.frameworks
def test_lightning_cut_off_after_each_epoch_ends_like_an_uncut_run(
    torch_python: Path, tmp_path: Path
) -> None:
    program = EXAMPLES / "lightning" / "train.py"
    words = ("--epochs", "3")
    stop = tmp_path / "stop"
    stop.touch()

    def train(folder: str, **more: str) -> int:
        place = {"RUNYARD_CHECKPOINT_DIR": str(tmp_path / folder), "WANDB_MODE": "disabled"}
        ended = run_program(torch_python, program, *words, **place, **more)
        assert ended.returncode in (0, 75), ended.stderr
        return ended.returncode

    assert train("uncut") == 0
    codes = [train("cut", RUNYARD_STOP_FILE=str(stop)) for _ in range(3)]
    assert codes == [75, 75, 0]
    compared = run_program(
        torch_python, Path(__file__).parent / "programs" / "same_weights.py",
        str(tmp_path / "uncut" / "last.ckpt"), str(tmp_path / "cut" / "last.ckpt"),
    )  # fmt: skip
    assert compared.stdout == "same\n", compared.stdout + compared.stderr


@pytest.mark.frameworks
def test_lightning_is_tracked(runyard: RunRunyard, torch_python: Path, tmp_path: Path) -> None:
    ended = runyard(
        "run", "-q", "--", str(torch_python), str(EXAMPLES / "lightning" / "train.py"),
        "--epochs", "2",
        env=program_environment(), cwd=tmp_path, timeout=300,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    (run,) = list_runs(runyard)
    assert run["config"]["hidden"] == 32
    assert run["summary"]["val_loss"] < 8  # The variance of the target.
    assert run["summary"]["epoch"] == 1
