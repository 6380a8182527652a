"""A node is frozen, another one takes its trial, and the first one's program wakes up beside it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from runyard.home import Home
from tests.conftest import RunRunyard
from tests.live.programs import curves
from tests.live.sweeping import (
    agents_of,
    processes_of,
    started_sweep,
    sweep_json,
    trials_of,
    with_python,
    write_sweep,
)
from tests.node.terminals import until

pytestmark = pytest.mark.live

# Each attempt waits for a word of the test before its last rows.
PROGRAM = """\
import os, time, wandb
from pathlib import Path
place = Path(os.environ["RUNYARD_CHECKPOINT_DIR"]) / "state"
attempt = int(os.environ["RUNYARD_ATTEMPT"])
start = int(place.read_text()) if place.exists() else 0
run = wandb.init(settings=wandb.Settings(x_disable_stats=True))
for step in range(start, 16):
    run.log({"attempt": attempt, "epoch": step})
    if step == 5 and attempt == 1:
        place.write_text("6")
    time.sleep(0.2)
    while step == {1: 9, 2: 13}[attempt] and not Path(f"go{attempt}").exists():
        time.sleep(0.1)
run.finish()
Path(f"ended{attempt}").touch()
"""


def test_the_present_attempts_history_and_end_are_its_own(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNYARD_LEASE_SECONDS", "5")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("WANDB_X_FILE_STREAM_TRANSMIT_INTERVAL", "0.3")
    file = write_sweep(tmp_path / "p", PROGRAM, parameters={"a": {"value": 1}})
    made = runyard("sweep", file.name, "--no-run", cwd=file.parent, env=with_python())
    assert made.returncode == 0, made.stderr
    sweep = sweep_json(runyard)
    with started_sweep(state_folder, sweep["id"], cwd=file.parent):
        until(lambda: _count(state_folder) == 10, "the first program's rows", 60.0)
        frozen = list(processes_of(state_folder, r"runyard\.node|train\.py|wandb"))
        agent = agents_of(state_folder)[0]
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        with started_sweep(state_folder, sweep["id"], cwd=file.parent) as second:
            until(lambda: trials_of(state_folder)[0]["attempts"] == 2, "another attempt", 60.0)
            until(lambda: _count(state_folder) == 14, "the second program's rows", 60.0)
            for pid in frozen:
                if pid != agent:  # It would hear that the trial is lost, and end its program.
                    os.kill(pid, signal.SIGCONT)
            (file.parent / "go1").touch()
            until(lambda: (file.parent / "ended1").exists(), "the first program's end", 60.0)
            (trial,) = trials_of(state_folder)
            assert trial["state"] == "running"
            (file.parent / "go2").touch()
            second.wait(60)
    (trial,) = trials_of(state_folder)
    assert (trial["state"], trial["attempts"]) == ("finished", 2)
    found = curves(state_folder, trial["id"])
    assert list(found["epoch"]["values"]) == list(range(16))
    assert list(found["attempt"]["values"]) == [1] * 6 + [2] * 10


def _count(home: Home) -> int:
    """The rows of the trial's run."""
    trials = trials_of(home)
    if not trials or trials[0]["run"] is None:
        return 0
    found = curves(home, trials[0]["id"]).get("attempt")
    return 0 if found is None else len(found["values"])
