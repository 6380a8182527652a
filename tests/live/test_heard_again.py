"""A program that is suspended with its agent while the trial goes on elsewhere, and wakes first."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard.home import Home
from runyard.save_protocol import MANIFEST
from runyard.train import folders
from tests.conftest import RunRunyard
from tests.live.sweeping import (
    agents_of,
    programs_of,
    sweep_json,
    trials_of,
    with_python,
    write_sweep,
)
from tests.node.terminals import until

pytestmark = pytest.mark.live

# Ends when it is told to, or after a minute.
PROGRAM = """\
import os, time
from runyard import train
state = train.Checkpoint(every_steps=1)
for step in train.steps(state.resume(), 600, state, show=False):
    with open(state.folder.parent / "steps", "a") as file:
        print(os.environ["RUNYARD_ATTEMPT"], step, file=file)
    time.sleep(0.1)
    if (state.folder.parent / "end").exists():
        break
"""


@pytest.fixture
def jobs() -> Iterator[list[subprocess.Popen[bytes]]]:
    found: list[subprocess.Popen[bytes]] = []
    yield found
    for job in found:
        job.kill()
        job.wait()


def attempt_of(checkpoint: folders.Saved) -> str:
    return str(json.loads((checkpoint.path / MANIFEST).read_bytes())["attempt"])


def test_it_ends_and_takes_nothing_from_the_later_attempt(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, jobs: list[subprocess.Popen[bytes]],
) -> None:  # fmt: skip
    monkeypatch.setenv("RUNYARD_LEASE_SECONDS", "2")
    file = write_sweep(tmp_path / "p", PROGRAM, parameters={"a": {"value": 1}})
    made = runyard("sweep", file.name, "--no-run", cwd=file.parent)
    assert made.returncode == 0, made.stderr
    sweep = sweep_json(runyard)

    def start_job() -> None:
        jobs.append(
            subprocess.Popen(
                [sys.executable, "-m", "runyard", "sweep", sweep["id"]],
                cwd=file.parent, env={**os.environ, **with_python()}, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            )
        )  # fmt: skip

    def steps_of(attempt: int) -> int:
        found = list(file.parent.glob("sweeps/*/*/steps"))
        lines = found[0].read_text().splitlines() if found else []
        return sum(line.startswith(f"{attempt} ") for line in lines)

    start_job()
    until(lambda: steps_of(1) >= 5, "its first steps", 60.0)
    programs = programs_of(state_folder)
    agents = agents_of(state_folder)
    for pid in (*agents, *programs):  # Before its program ends, the agent's keeper would say so.
        os.kill(pid, signal.SIGSTOP)
    before = steps_of(1)
    try:
        start_job()
        until(lambda: steps_of(2) >= 20, "the second attempt's steps", 60.0)
        for pid in programs:
            os.kill(pid, signal.SIGCONT)
        until(lambda: not set(programs) & set(programs_of(state_folder)), "its end", 60.0)
    finally:
        for pid in agents:
            os.kill(pid, signal.SIGCONT)
    assert steps_of(1) <= before + 2
    (steps,) = file.parent.glob("sweeps/*/*/steps")
    steps.with_name("end").touch()
    until(lambda: jobs[1].poll() is not None, "the end", 60.0)
    (trial,) = trials_of(state_folder)
    assert trial["state"] == "finished"
    (found,) = file.parent.glob("sweeps/*/*/checkpoints")
    assert "1" not in {attempt_of(path) for path in folders.saved(found)}
