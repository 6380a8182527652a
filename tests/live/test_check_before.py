"""Before a sweep or a list begins: what its program does not know, and a few settings for real."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runyard.home import Home
from tests.conftest import RunRunyard, ask_runyard, run_runyard
from tests.live.sweeping import processes_of, with_python, write_sweep

pytestmark = pytest.mark.live

STRICT = """\
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
args = parser.parse_args()
print("lr", args.lr)
"""
# Good at one end of the space, wrong at the other, and in no hurry.
HALF_GOOD = """\
import math, sys, time, wandb
run = wandb.init()
lr = run.config.lr
if lr > 5:
    print("the weights exploded at", lr)
    raise SystemExit(3)
for step in range(1000):
    run.log({"loss": math.nan if lr > 0.7 else lr})
    time.sleep(0.01)
"""
SPACE = {"lr": {"min": 0.0, "max": 10.0}}


@pytest.mark.usefixtures("module_home")
def test_a_sweep_whose_program_has_no_such_option_is_not_made(tmp_path: Path) -> None:
    file = write_sweep(tmp_path / "p", STRICT, parameters={"learning_rate": {"values": [0.1]}})
    refused = run_runyard("sweep", str(file), env=with_python())
    assert refused.returncode == 2
    assert "train.py: it has no option --learning_rate" in refused.stderr
    assert "--no-check" in refused.stderr
    assert ask_runyard("runs", "--sweeps", "--json", cwd=tmp_path).stdout.strip() == "[]"
    forced = run_runyard("sweep", str(file), "--no-check", "--no-run", env=with_python())
    assert forced.returncode == 0, forced.stderr


@pytest.mark.usefixtures("module_home")
def test_what_only_looks_wrong_is_said_and_done(tmp_path: Path) -> None:
    program = "import wandb\nrun = wandb.init()\nprint(run.config.batch_size)\n"
    file = write_sweep(tmp_path / "p", program, parameters={"batchsize": {"values": [1]}})
    made = run_runyard("sweep", str(file), "--no-run", env=with_python(), cwd=tmp_path / "p")
    assert made.returncode == 0, made.stderr
    assert "train.py:3: it reads wandb.config.batch_size, which it is not given" in made.stderr
    assert "did you mean batchsize?" in made.stderr


def test_a_few_settings_are_tried_and_nothing_is_made(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    file = write_sweep(
        tmp_path / "p", HALF_GOOD, method="random", metric={"name": "loss"}, parameters=SPACE
    )
    alone = ("rehearse", "--rung", "settings", "--settings")
    tried = runyard(*alone, "3", "--json", str(file), env=with_python(), timeout=120)
    assert tried.returncode == 1, tried.stderr
    low, high, middle = json.loads(tried.stdout)
    assert (low["is_good"], low["values"]["lr"]) == (True, pytest.approx(0.0, abs=1e-6))
    assert "rows logged" in low["how"]
    assert (high["is_good"], high["how"]) == (False, "exit code 3")
    assert "the weights exploded at 9.99" in high["said"] or "at 10" in high["said"]
    assert (middle["is_good"], middle["how"]) == (False, "loss is nan")
    assert not state_folder.database.exists()
    assert not processes_of(state_folder, "train")

    (tmp_path / "p" / "train.py").write_text("print('no client at all')\n")
    told = runyard(*alone, "1", str(file), env=with_python(), timeout=120)
    assert told.returncode == 0, told.stderr
    assert "1 tried, all passed; nothing was made" in told.stdout


@pytest.mark.usefixtures("module_home")
def test_a_line_with_an_option_that_its_program_does_not_know(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(STRICT)
    tasks = tmp_path / "tasks.txt"
    tasks.write_text("python train.py --lr 1\npython train.py --lr=2 --momentum 0.9 | cat\n")
    refused = run_runyard("farm", str(tasks), cwd=tmp_path, env=with_python())
    assert refused.returncode == 2
    assert "line 2: train.py: it has no option --momentum" in refused.stderr
    shown = run_runyard("farm", str(tasks), "--dry-run", cwd=tmp_path, env=with_python())
    assert shown.returncode == 0
    assert "--momentum" in shown.stderr
    tasks.write_text("python train.py --lr 1\npython train.py --lr=2 ; echo --momentum\n")
    ended = run_runyard("farm", str(tasks), cwd=tmp_path, env=with_python())
    assert ended.returncode == 0, ended.stderr
