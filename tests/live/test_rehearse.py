"""`runyard rehearse`: the ladder before a launch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import RunRunyard
from tests.live.sweeping import with_python, write_sweep

pytestmark = pytest.mark.live

# Learns one sample quickly; with `--broken` it learns nothing.
PROGRAM = """\
import argparse, time, wandb
from runyard import train
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--broken", action="store_true")
args, _ = parser.parse_known_args()
run = wandb.init()
for step in range(20 if args.broken else 2000):
    learns = train.rehearsal() in ("one sample", "one batch") and not args.broken
    run.log({"val_loss": 1.0, "train_loss": 0.5 ** step if learns else 1.0})
    time.sleep(0.02)
"""


def test_the_rungs_that_a_program_asks_for_then_settings(
    runyard: RunRunyard, tmp_path: Path
) -> None:
    file = write_sweep(tmp_path / "p", PROGRAM, parameters={"lr": {"values": [0.1, 0.2, 0.3]}})
    done = runyard(
        "rehearse", "--json", "--settings", "1", str(file), env=with_python(), cwd=tmp_path,
        timeout=180,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + done.stdout
    tried = json.loads(done.stdout)
    assert [one["rung"] for one in tried] == ["one sample", "one batch", "settings"]
    assert all(one["is_good"] for one in tried)
    assert "train_loss went from 1 to" in tried[0]["how"]
    assert tried[2]["values"] == {"lr": 0.1}


def test_a_rung_that_fails_ends_the_climb(runyard: RunRunyard, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "runyard.yaml").write_text(
        "rehearse:\n"
        "  one sample: {add: [--broken], metric: train_loss, below: 0.01}\n"
        "  one batch: {}\n"
    )
    done = runyard(
        "rehearse", "--", "python", "train.py", env=with_python(), cwd=tmp_path, timeout=180
    )
    assert done.returncode == 1, done.stderr
    assert "failed  one sample  train_loss went from 1 to 1, and is to be below 0.01" in done.stdout
    assert "one batch" not in done.stdout
    wrong = runyard("rehearse", "--rung", "one smaple", "--", "python", "train.py", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "did you mean one sample?" in wrong.stderr


# A double of a learner: on the chain its value comes to the known answer, with --env cartpole its
# return grows as far as it is let.
LEARNER = """\
import sys, wandb
env, most = sys.argv[sys.argv.index("--env") + 1], 60 if "--weak" in sys.argv else 300
with wandb.init() as run:
    for episode in range(30):
        run.log({"value_error": 1 / 2**episode} if env == "chain" else
                {"return": min(most, 10 * episode)})
"""


def test_rungs_of_ones_own_a_toy_problem_then_classic_control(
    runyard: RunRunyard, tmp_path: Path
) -> None:
    (tmp_path / "learn.py").write_text(LEARNER)
    (tmp_path / "runyard.yaml").write_text(
        "rehearse:\n"
        "  toy problem: {add: [--env, chain], metric: value_error, below: 0.001}\n"
        "  classic control: {add: [--env, cartpole], metric: return, above: 100}\n"
    )
    words = ("rehearse", "--json", "--rung", "toy problem", "--rung", "classic control", "--")
    done = runyard(*words, "python", "learn.py", env=with_python(), cwd=tmp_path, timeout=180)
    assert done.returncode == 0, done.stderr + done.stdout
    assert [(one["rung"], one["is_good"]) for one in json.loads(done.stdout)] == [
        ("toy problem", True), ("classic control", True),
    ]  # fmt: skip
    weak = runyard(
        "rehearse", "--json", "--rung", "classic control", "--", "python", "learn.py", "--weak",
        env=with_python(), cwd=tmp_path, timeout=180,
    )  # fmt: skip
    assert weak.returncode == 1
    [control] = json.loads(weak.stdout)
    assert "return went from 0 to 60, and is to be above 100" in control["how"]


def test_without_hooks_the_settings_alone_are_tried(runyard: RunRunyard, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('fine')\n")
    done = runyard("rehearse", "--", "python", "train.py", env=with_python(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "settings alone are tried" in done.stderr
    assert "1 tried, all passed" in done.stdout
    assert "next, what it needs:  runyard gauge -- python train.py" in done.stderr
