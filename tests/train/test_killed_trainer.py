"""A trainer that is killed with -9 at any moment ends with the numbers of one that was not."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from runyard.train import folders
from tests.train.frameworks import program_environment, run_program
from tests.train.warm import WarmPython

PROGRAMS = Path(__file__).parent / "programs"
NUMPY = PROGRAMS / "numpy_trainer.py"
TORCH = PROGRAMS / "torch_trainer.py"

# RUNYARD_KILLS=50 is the long version.
KILLS = int(os.environ.get("RUNYARD_KILLS", "10"))


def kill_after(seconds: float, folder: Path, **more: str) -> bool:
    """Start a trainer and kill it a while after its first step. False if it was through before."""
    trainer = subprocess.Popen(
        [sys.executable, str(NUMPY)],
        env=program_environment(RUNYARD_CHECKPOINT_DIR=str(folder), **more),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert trainer.stdout is not None
    with trainer.stdout:
        # Imports are not what is to be killed.
        output = []
        for line in trainer.stdout:
            output.append(line)
            if line == "training\n":
                break
        try:
            trainer.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            trainer.send_signal(signal.SIGKILL)
        output += trainer.stdout.readlines()
    assert "damaged" not in "".join(output)
    return trainer.wait() == -signal.SIGKILL


def result(folder: Path, **more: str) -> str:
    ended = run_program(sys.executable, NUMPY, RUNYARD_CHECKPOINT_DIR=str(folder), **more)
    assert ended.returncode == 0, ended.stderr
    assert "damaged" not in ended.stderr
    return next(line for line in ended.stdout.splitlines() if line.startswith("result"))


@pytest.mark.parametrize("seed", [1])
def test_killed_at_any_moment_it_ends_with_the_same_numbers(tmp_path: Path, seed: int) -> None:
    choose = random.Random(seed)
    settings = {"STEPS": str(40 * KILLS), "EVERY_STEPS": "2", "BALLAST": "200000"}
    uncut = result(tmp_path / "uncut", **settings)
    cut = tmp_path / "cut"
    killed = 0
    for _ in range(KILLS):
        killed += kill_after(choose.uniform(0, 0.2), cut, **settings)
        for entry in folders.saved(cut):
            folders.verify(entry.path)  # What has its name is whole.
    assert killed == KILLS
    assert result(cut, **settings) == uncut


@pytest.mark.parametrize("seed", [1])
def test_killed_while_writing_it_ends_with_the_same_numbers(tmp_path: Path, seed: int) -> None:
    """At chosen moments between two things that it does to its checkpoint folder."""
    choose = random.Random(seed)
    settings = {"STEPS": str(20 * KILLS)}
    uncut = result(tmp_path / "uncut", **settings)
    cut = tmp_path / "cut"
    for _ in range(KILLS):
        event = str(choose.randint(1, 150))
        ended = run_program(
            sys.executable, NUMPY, RUNYARD_CHECKPOINT_DIR=str(cut), KILL_AT_EVENT=event, **settings
        )
        assert "damaged" not in ended.stderr
        for entry in folders.saved(cut):
            folders.verify(entry.path)
        assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert result(cut, **settings) == uncut
    assert not [path for path in cut.iterdir() if path.name.startswith(".")]


def test_killed_at_every_single_moment_of_a_save(tmp_path: Path) -> None:
    """One trainer a moment, from the first thing that is done to the folder to the last."""
    settings = {"STEPS": "2", "EVERY_STEPS": "1", "PAUSE": "0", "BALLAST": "10"}
    uncut = result(tmp_path / "uncut", **settings)
    event, through = 0, False
    while not through:
        event += 1 if KILLS >= 50 else 7
        cut = tmp_path / str(event)
        ended = run_program(
            sys.executable, NUMPY,
            RUNYARD_CHECKPOINT_DIR=str(cut), KILL_AT_EVENT=str(event), **settings,
        )  # fmt: skip
        through = ended.returncode == 0
        assert result(cut, **settings) == uncut
    assert event > 20


@pytest.mark.frameworks
@pytest.mark.parametrize("seed", [1])
def test_torch_too(tmp_path: Path, warm: WarmPython, seed: int) -> None:
    choose = random.Random(seed)
    cut = tmp_path / "cut"
    settings = {"STEPS": str(40 * KILLS), "EVERY_STEPS": "2", "PAUSE": "0.005"}
    uncut = warm.run(TORCH, RUNYARD_CHECKPOINT_DIR=str(tmp_path / "uncut"), **settings)
    for _ in range(KILLS):
        trainer = warm.start(TORCH, RUNYARD_CHECKPOINT_DIR=str(cut), **settings)
        while "training" not in trainer.stdout():
            assert trainer.wait(0.005) is None
        assert trainer.wait(choose.uniform(0, 0.3)) is None, "through before it was killed"
        os.kill(trainer.pid, signal.SIGKILL)
        assert trainer.wait() == -signal.SIGKILL
        for entry in folders.saved(cut):
            folders.verify(entry.path)
    ended = warm.run(TORCH, RUNYARD_CHECKPOINT_DIR=str(cut), **settings)
    assert "damaged" not in ended.stderr
    assert ended.stdout.splitlines()[-1] == uncut.stdout.splitlines()[-1]
    assert ended.stdout.splitlines()[-1].startswith("result")
