"""When the loop saves, and when it leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runyard import train
from runyard.train import folders
from tests.train.frameworks import program_environment

COUNTING = """
import os, sys, time
from runyard import train

state = train.Checkpoint(done=0, every_seconds=float(os.environ.get("EVERY", "1e9")))
for step in train.steps(state.resume(), int(sys.argv[1]), state):
    assert state.done == step
    state.done = step + 1
    print("step", step, flush=True)
    time.sleep(float(sys.argv[2]))
print("through")
"""


def count(folder: Path, total: int, seconds: float, **more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", COUNTING, str(total), str(seconds)],
        env=program_environment(RUNYARD_CHECKPOINT_DIR=str(folder), **more),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def wait_for_step(program: subprocess.Popen[str], step: int) -> None:
    assert program.stdout is not None
    for line in program.stdout:
        if line == f"step {step}\n":
            return
    raise AssertionError(f"the program ended before step {step}")


def test_the_signal_saves_at_the_end_of_the_step_and_leaves(tmp_path: Path) -> None:
    first = count(tmp_path, 10, 0.2)
    wait_for_step(first, 2)
    first.send_signal(signal.SIGUSR2)
    output, _ = first.communicate(timeout=60)
    assert first.returncode == train.GO_ON == 75
    assert "leaving with exit code 75" in output
    assert [entry.step for entry in folders.saved(tmp_path)] == [3]
    assert (tmp_path / "go-on").exists()

    second = count(tmp_path, 10, 0)
    output, _ = second.communicate(timeout=60)
    assert second.returncode == 0
    assert "step 2\n" not in output
    assert "step 3\n" in output
    assert "through" in output
    assert not (tmp_path / "go-on").exists()

    third = count(tmp_path, 10, 0)
    output, _ = third.communicate(timeout=60)
    assert third.returncode == 0
    assert "all 10 steps are done already" in output
    assert "step 9\n" not in output


def test_the_stop_file_does_the_same(tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    program = count(tmp_path / "checkpoints", 1000, 0.1, RUNYARD_STOP_FILE=str(stop))
    wait_for_step(program, 2)
    stop.touch()
    program.communicate(timeout=60)
    assert program.returncode == 75
    assert folders.saved(tmp_path / "checkpoints")[-1].step < 1000


def test_it_leaves_before_the_deadline_by_itself(tmp_path: Path) -> None:
    """With one more step and a save to spare, and ten seconds."""
    deadline = time.time() + 12
    program = count(tmp_path, 1000, 0.1, RUNYARD_DEADLINE=str(deadline))
    program.communicate(timeout=60)
    assert program.returncode == 75
    assert folders.saved(tmp_path)[-1].step < 1000


def test_it_saves_on_time(tmp_path: Path) -> None:
    program = count(tmp_path, 1000, 0.05, EVERY="0.2")
    deadline = time.monotonic() + 180
    while not folders.saved(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)
    program.kill()
    program.communicate()
    assert folders.saved(tmp_path)


def test_it_saves_on_step_and_at_the_end(tmp_path: Path) -> None:
    state = train.Checkpoint(folder=tmp_path, every_steps=4, keep=10)
    for _ in train.steps(0, 10, state):
        pass
    assert [entry.step for entry in folders.saved(tmp_path)] == [4, 8, 10]


def test_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    assert train.time_left() == float("inf")
    assert not train.should_stop()
    monkeypatch.setenv("SLURM_JOB_END_TIME", "0")
    assert train.time_left() == float("inf")
    monkeypatch.setenv("SLURM_JOB_END_TIME", str(int(time.time()) + 1000))
    assert 990 < train.time_left() <= 1000
    monkeypatch.setenv("RUNYARD_DEADLINE", str(time.time() + 100))
    assert 90 < train.time_left() <= 100
    assert not train.should_stop()
    assert train.should_stop(reserve=200)


def test_the_programs_own_handler_is_called_too() -> None:
    program = (
        "import os, signal\n"
        "from runyard import train\n"
        "signal.signal(signal.SIGUSR2, lambda *_: print('own handler'))\n"
        "assert not train.should_stop()\n"
        "os.kill(os.getpid(), signal.SIGUSR2)\n"
        "assert train.should_stop()\n"
        "train.go_on()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], env=program_environment(), capture_output=True, text=True
    )
    assert ended.returncode == 75, ended.stderr
    assert "own handler" in ended.stdout
    assert os.WIFEXITED(ended.returncode << 8)
