"""When the job ends, what is done before that, and what a program has saved by then."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runyard.node.agent.job_end import JobEnd, find_end
from runyard.node.attempt.checkpoints import asked_to_go_on, has_saved, is_used, saved_at
from runyard.node.attempt.exit_causes import final_cause
from runyard.schedulers.inside import this_job

NOW = 1_000_000.0


@pytest.mark.parametrize(
    ("seconds", "environ", "end"),
    [
        (None, {}, None),
        (60.0, {}, NOW + 60),
        (None, {"SLURM_JOB_END_TIME": str(NOW + 90)}, NOW + 90),
        (60.0, {"SLURM_JOB_END_TIME": str(NOW + 90)}, NOW + 60),
        (120.0, {"SLURM_JOB_END_TIME": str(NOW + 90)}, NOW + 90),
        (None, {"SLURM_JOB_END_TIME": "0", "SLURM_JOB_ID": "7"}, None),
    ],
)
def test_the_soonest_end_counts(
    seconds: float | None, environ: dict[str, str], end: float | None
) -> None:
    requested = None if seconds is None else NOW + seconds
    assert find_end(requested, this_job(environ), NOW) == end


@pytest.mark.parametrize(
    ("said", "is_known"),
    [
        ("77 0 1000000 1003600 N/A", True),
        ("77 0 1000000 NONE N/A", False),
        ("78 0 1000000 1003600 N/A", False),
        # Of its former start.
        ("77 1 1000000 1003600 N/A", False),
        ("squeue: error: no", False),
        ("", False),
    ],
)
def test_an_older_slurm_is_asked(
    said: str, is_known: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """squeue is a double."""
    monkeypatch.setattr("runyard.node.agent.job_end.PATIENCE", 1.0)
    monkeypatch.setenv("RUNYARD_HOME", str(tmp_path / "home"))
    program = tmp_path / "squeue"
    program.write_text(f"#!/bin/sh\necho '{said}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = find_end(None, this_job({"SLURM_JOB_ID": "77"}), NOW)
    assert found == (1_003_600 if is_known else None)


@pytest.mark.parametrize("has_variables", [True, False], ids=["24.11", "22.05"])
@pytest.mark.parametrize("ahead", [-90, 0, 90])
def test_a_controller_whose_clock_is_ahead_leaves_no_more_time_than_the_job_has(
    ahead: int, has_variables: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job of 5 minutes that begins now; squeue is a double, which tells the controller's time.
    With 90 s too many, programs would still be at work when Slurm ends the job."""
    began = int(time.time())
    start, end = began + ahead, began + ahead + 300
    program = tmp_path / "squeue"
    program.write_text(f"#!/bin/sh\necho 77 0 {start} {end} N/A\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("RUNYARD_HOME", str(tmp_path / "home"))
    environ = {"SLURM_JOB_ID": "77"}
    if has_variables:
        environ |= {"SLURM_JOB_START_TIME": str(start), "SLURM_JOB_END_TIME": str(end)}
    found = find_end(None, this_job(environ), began)
    assert found is not None
    assert found <= time.time() + 300
    # A node whose clock is ahead stops early: nothing tells it from a job that began long ago.
    assert found >= began + 300 + min(0, ahead)


def test_a_machine_that_has_no_slurm_after_all_has_no_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runyard.node.agent.job_end.PATIENCE", 0.5)
    monkeypatch.setenv("RUNYARD_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "/nowhere")
    assert find_end(None, this_job({"SLURM_JOB_ID": "77"}), NOW) is None
    # Nor does a controller that is away say when: then it is what was asked for.
    assert find_end(None, this_job({"SLURM_JOB_ID": "77"}), NOW, limit=90) == NOW + 90
    # Counted from the script's beginning: a slow profile and staging took their part of it.
    assert find_end(None, this_job({"SLURM_JOB_ID": "77"}), NOW, limit=90, age=40) == NOW + 50
    assert find_end(None, this_job({"SLURM_JOB_ID": "77"}), NOW, limit=90, age=4000) == NOW + 90


def test_an_agent_counts_its_time_from_its_scripts_beginning() -> None:
    """Where the scheduler does not say when the job ends."""
    ask = (
        "from runyard.node.agent.options import read_end; "
        "print(read_end({}, {'limit': 300.0}).seconds_left(__import__('time').time()))"
    )
    shell = f'sleep 2; "{sys.executable}" -c "{ask}"; :'
    environ = {name: value for name, value in os.environ.items() if "SLURM" not in name}
    shown = subprocess.run(
        ["bash", "-c", shell], env=environ, capture_output=True, text=True, check=True
    ).stdout
    assert 0 < float(shown) <= 298


def test_the_grace_is_two_minutes_or_a_tenth() -> None:
    assert JobEnd(NOW + 7200, NOW).grace == 120
    assert JobEnd(NOW + 600, NOW).grace == 60
    assert JobEnd(NOW + 600, NOW, grace=300).grace == 300
    # Slurm may have shortened the job, and it is to do something besides saving.
    assert JobEnd(NOW + 60, NOW, grace=300).grace == 45
    short = JobEnd(NOW + 60, NOW, grace=20)
    assert short.deadline == NOW + 55  # The last call comes before the end, not at it.
    assert not short.is_near(NOW)
    assert short.is_near(NOW + 40)
    assert JobEnd(None, NOW).deadline is None
    assert not JobEnd(None, NOW).is_near(NOW)


def test_for_how_long_a_program_may_work_before_it_is_told_to_save() -> None:
    end = JobEnd(NOW + 100, NOW, grace=10)
    assert end.useful_seconds(NOW) == 90
    assert end.useful_seconds(NOW + 91) == -1  # It would be told at once.
    assert JobEnd(None, NOW).useful_seconds(NOW) is None


@pytest.mark.parametrize(
    ("exit_code", "ending", "seen", "asked", "saved", "cause"),
    [
        (0, "time", None, False, True, None),
        (75, "time", "go-on", False, True, "go-on"),
        (1, None, None, True, True, "go-on"),  # As torchrun tells it.
        (1, None, "memory", False, True, "memory"),
        (-15, "time", None, False, True, "time"),
        (-9, "preempted", None, False, False, "preempted"),
        (-9, None, None, False, True, "cut"),
        (139, None, None, False, True, "cut"),
        (-11, None, None, False, False, None),
        (1, None, None, False, True, None),
        (75, "canceled", "go-on", True, True, "canceled"),
        (0, "stopped", None, False, False, "stopped"),
    ],
)
def test_the_cause_that_the_ledger_is_told(
    exit_code: int, ending: str | None, seen: str | None, asked: bool, saved: bool,
    cause: str | None,
) -> None:  # fmt: skip
    assert final_cause(exit_code, ending, seen, asked=asked, saved=saved) == cause


def test_what_is_there_of_a_program_that_saves(tmp_path: Path) -> None:
    trial, beside = tmp_path / "a" / "checkpoints", tmp_path / "b" / "checkpoints"
    trial.mkdir(parents=True)
    beside.mkdir(parents=True)
    place = str(trial)
    assert saved_at(place) is None
    assert not is_used(place)
    (trial / "go-on").write_text("")
    (trial / ".partial-1").mkdir()
    (trial / ".partial-1" / "model.pt").write_text("half")
    assert saved_at(place) is None, "neither a note nor what is half-written is a checkpoint"
    assert asked_to_go_on(place, since=0.0)
    assert not asked_to_go_on(place, since=2e10)

    (beside / "state.txt").write_text("12")
    assert is_used(place), "the trial beside it saves, so this one would have"
    os.utime(beside / "state.txt", (NOW, NOW))
    assert saved_at(str(beside)) == pytest.approx(NOW, abs=0.1)
    assert has_saved(str(beside), since=NOW)
    assert not has_saved(str(beside), since=NOW + 60)

    # What `runyard.train` writes says the very moment, whatever became of its files since.
    for number, moment in ((8, NOW + 0.25), (9, NOW + 0.75)):
        folder = trial / f"000000{number}-step-{number}"
        folder.mkdir()
        (folder / "manifest.json").write_text(json.dumps({"saved_at": moment}))
    assert saved_at(place) == NOW + 0.75
