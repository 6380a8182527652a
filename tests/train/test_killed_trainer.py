"""A trainer that is killed with -9 at any moment ends with the numbers of one that was not."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runyard.train import folders
from tests.train.frameworks import program_environment, run_program

PROGRAMS = Path(__file__).parent / "programs"
NUMPY = PROGRAMS / "numpy_trainer.py"
TORCH = PROGRAMS / "torch_trainer.py"

# Starting torch takes seconds, so it is killed less often; RUNYARD_KILLS=50 is the long version.
KILLS = int(os.environ.get("RUNYARD_KILLS", "10"))
TORCH_KILLS = int(os.environ.get("RUNYARD_KILLS", "3"))


def kill_after(
    seconds: float, python: Path | str, program: Path, folder: Path, **more: str
) -> bool:
    """Start a trainer and kill it after a while. False if it was through before."""
    environment = program_environment(RUNYARD_CHECKPOINT_DIR=str(folder), **more)
    with (folder.parent / "output").open("a+") as output:
        trainer = subprocess.Popen(
            [str(python), str(program)], env=environment, stdout=output, stderr=output
        )
        # From its first sign of life on, so that a slow machine kills training and not imports.
        begin = time.monotonic()
        while not folder.exists() and trainer.poll() is None and time.monotonic() - begin < 60:
            time.sleep(0.01)
        try:
            trainer.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            trainer.send_signal(signal.SIGKILL)
        return trainer.wait() == -signal.SIGKILL


def result(python: Path | str, program: Path, folder: Path, **more: str) -> str:
    ended = run_program(python, program, RUNYARD_CHECKPOINT_DIR=str(folder), **more)
    assert ended.returncode == 0, ended.stderr
    assert "damaged" not in ended.stderr
    return next(line for line in ended.stdout.splitlines() if line.startswith("result"))


@pytest.mark.parametrize("seed", [1])
def test_killed_at_any_moment_it_ends_with_the_same_numbers(tmp_path: Path, seed: int) -> None:
    choose = random.Random(seed)
    settings = {"STEPS": "400", "PAUSE": "0.001", "EVERY_STEPS": "2", "BALLAST": "200000"}
    uncut = result(sys.executable, NUMPY, tmp_path / "uncut", **settings)
    cut = tmp_path / "cut" / "checkpoints"
    cut.parent.mkdir()
    killed = 0
    for _ in range(KILLS):
        killed += kill_after(choose.uniform(0, 0.5), sys.executable, NUMPY, cut, **settings)
        for entry in folders.saved(cut):
            folders.verify(entry.path)  # What has its name is whole.
    assert killed >= min(KILLS, 5)
    assert result(sys.executable, NUMPY, cut, **settings) == uncut
    assert "damaged" not in (cut.parent / "output").read_text()


@pytest.mark.parametrize("seed", [1])
def test_killed_while_writing_it_ends_with_the_same_numbers(tmp_path: Path, seed: int) -> None:
    """At chosen moments between two things that it does to its checkpoint folder."""
    choose = random.Random(seed)
    uncut = result(sys.executable, NUMPY, tmp_path / "uncut")
    cut = tmp_path / "cut"
    for _ in range(KILLS):
        event = str(choose.randint(1, 150))
        ended = run_program(
            sys.executable, NUMPY, RUNYARD_CHECKPOINT_DIR=str(cut), KILL_AT_EVENT=event
        )
        assert "damaged" not in ended.stderr
        for entry in folders.saved(cut):
            folders.verify(entry.path)
        if ended.returncode == 0:
            break
        assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert result(sys.executable, NUMPY, cut) == uncut
    assert not [path for path in cut.iterdir() if path.name.startswith(".")]


def test_killed_at_every_single_moment_of_a_save(tmp_path: Path) -> None:
    """One trainer a moment, from the first thing that is done to the folder to the last."""
    settings = {"STEPS": "2", "EVERY_STEPS": "1", "PAUSE": "0", "BALLAST": "10"}
    uncut = result(sys.executable, NUMPY, tmp_path / "uncut", **settings)
    event, through = 0, False
    while not through:
        event += 1 if KILLS >= 50 else 7
        cut = tmp_path / str(event)
        ended = run_program(
            sys.executable, NUMPY,
            RUNYARD_CHECKPOINT_DIR=str(cut), KILL_AT_EVENT=str(event), **settings,
        )  # fmt: skip
        through = ended.returncode == 0
        assert result(sys.executable, NUMPY, cut, **settings) == uncut
    assert event > 20


@pytest.mark.frameworks
@pytest.mark.parametrize("seed", [1])
def test_torch_too(tmp_path: Path, torch_python: Path, seed: int) -> None:
    choose = random.Random(seed)
    settings = {"STEPS": "200", "EVERY_STEPS": "2"}
    uncut = result(torch_python, TORCH, tmp_path / "uncut", **settings)
    cut = tmp_path / "cut" / "checkpoints"
    cut.parent.mkdir()
    killed = 0
    for _ in range(TORCH_KILLS):
        killed += kill_after(choose.uniform(0, 2), torch_python, TORCH, cut, **settings)
        for entry in folders.saved(cut):
            folders.verify(entry.path)
    assert killed
    assert result(torch_python, TORCH, cut, **settings) == uncut
    assert "damaged" not in (cut.parent / "output").read_text()
