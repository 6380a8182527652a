"""A search under fire: agents, programs and the server are killed, jobs run out of time, and every
trial's history is that of a run that nobody disturbed."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard.client.discover import ensure_server
from runyard.home import Home
from runyard.shapes.sweeps import Sweep, Trial
from tests.conftest import RunRunyard, server_pids
from tests.live.programs import curves
from tests.live.sweeping import (
    agents_of,
    processes_of,
    programs_of,
    sweep_json,
    trials_of,
    with_python,
    write_sweep,
)
from tests.node.terminals import until

pytestmark = pytest.mark.live

# RUNYARD_ALL_KILLS=1: the size that is promised. The suite has a smaller one.
IS_WHOLE = bool(os.environ.get("RUNYARD_ALL_KILLS"))
TRIALS, KILLS, CUTS = (60, 50, 10) if IS_WHOLE else (6, 5, 2)
JOBS, SLOTS = (2, 4) if IS_WHOLE else (2, 2)
STEPS = 24
LONG = 1500.0  # A guard against a hang, never a measure.

SAVES = f"""\
import os, re, sys, time, wandb
from pathlib import Path
from runyard import train
x = float(dict(word[2:].split("=") for word in sys.argv[1:])["x"])
place = Path(os.environ["RUNYARD_CHECKPOINT_DIR"])
found = [int(path.name.rpartition("-")[2]) for path in place.glob("0*-step-*")]
run = wandb.init(settings=wandb.Settings(x_disable_stats=True, x_disable_machine_info=True))
state = train.Checkpoint(every_steps=4, value=x)
start = state.resume()
with open(place.parent / "starts", "a") as file:
    print(os.environ["RUNYARD_ATTEMPT"], start, max(found, default=0), file=file)
for step in train.steps(start, {STEPS}, state, show=False):
    state.value = state.value * 0.9 + 0.01 * step
    run.log({{"loss": state.value, "at": step}})
    time.sleep(0.15)
run.finish()
"""


def uncut(x: float) -> list[float]:
    values = []
    for step in range(STEPS):
        x = x * 0.9 + 0.01 * step
        values.append(x)
    return values


@pytest.fixture
def jobs(state_folder: Home) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Jobs that a test started; nothing of them outlives it."""
    found: list[subprocess.Popen[bytes]] = []
    yield found
    for job in found:
        job.kill()
        job.wait()
    for pid in processes_of(state_folder, "node|train"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_each_history_is_that_of_an_uncut_run(
    runyard: RunRunyard,
    state_folder: Home,
    tmp_path: Path,
    jobs: list[subprocess.Popen[bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WANDB_SILENT", "true")
    file = write_sweep(
        tmp_path / "fire",
        SAVES,
        method="bayes",
        metric={"name": "loss", "goal": "minimize"},
        parameters={"x": {"min": 0.0, "max": 1.0}},
        run_cap=TRIALS,
        # It is not the trials' fault how often they are hit here.
        runyard={"retries": {"node": 1000}},
    )
    made = runyard("sweep", file.name, "--no-run", "--seed", "1", cwd=file.parent)
    assert made.returncode == 0, made.stderr
    sweep = sweep_json(runyard)
    chance = random.Random(11)
    cuts = kills = 0
    end = time.monotonic() + LONG
    while (now := _look(state_folder, sweep))["state"] == "running":
        assert time.monotonic() < end, now["counts"]
        for _ in range(JOBS - sum(job.poll() is None for job in jobs)):
            bounded = cuts < CUTS
            cuts += bounded
            jobs.append(_start_job(sweep, file.parent, bounded=bounded))
        time.sleep(chance.uniform(0.5, 3.0))
        if kills < KILLS and now["counts"]["running"]:
            kills += _hit(state_folder, chance)
    for job in jobs:
        job.wait(120)

    assert (now["state"], now["cause"]) == ("finished", None)
    assert (kills, cuts) == (KILLS, CUTS), "it was over before all blows had fallen"
    trials = trials_of(state_folder)
    assert Counter(trial["state"] for trial in trials) == {"finished": TRIALS}
    assert sum(trial["attempts"] for trial in trials) > TRIALS, "nobody was hit while at work"
    for trial in trials:
        _assert_unbroken(state_folder, trial)
        _assert_went_on(file.parent / "sweeps" / sweep["id"] / trial["name"] / "starts")
    until(lambda: not processes_of(state_folder, "node|train|wandb-core"), "no process left", 60.0)
    assert not list(state_folder.spool.iterdir())


DIES = """\
import os, wandb
from runyard import train
run = wandb.init(settings=wandb.Settings(x_disable_stats=True))
state = train.Checkpoint(every_steps=4)
for step in train.steps(state.resume(), 12, state, show=False):
    run.log({"square": step * step})
    if step == 6 and os.environ["RUNYARD_ATTEMPT"] == "1":
        os.kill(os.getpid(), 9)
run.finish()
"""


# Knows nothing of runyard but the folder.
DIES_WITHOUT_LIBRARY = """\
import os, time, wandb
from pathlib import Path
place = Path(os.environ["RUNYARD_CHECKPOINT_DIR"]) / "state"
start = int(place.read_text()) if place.exists() else 0
print("going on at step", start)
run = wandb.init(settings=wandb.Settings(x_disable_stats=True))
for step in range(start, 12):
    run.log({"square": step * step})
    time.sleep(0.05)
    if step % 4 == 3:
        place.with_name(".new").write_text(str(step + 1))
        place.with_name(".new").replace(place)
    time.sleep(0.05)
    if step == 6 and os.environ["RUNYARD_ATTEMPT"] == "1":
        os.kill(os.getpid(), 9)
run.finish()
"""


# Only one row was logged before the checkpoint.
DIES_EARLY = DIES.replace("every_steps=4", "every_steps=1").replace("step == 6", "step == 1")

# The newest of two checkpoints is damaged.
DIES_DAMAGED = DIES.replace("step == 6", "step == 10").replace(
    "        os.kill",
    "        os.truncate(state.folder / 'latest' / '_random.tree', 9)\n        os.kill",
)


@pytest.mark.parametrize(
    ("program", "start"),
    [(DIES, 4), (DIES_EARLY, 1), (DIES_DAMAGED, 4), (DIES_WITHOUT_LIBRARY, 4)],
    ids=["train", "early", "damaged", "plain"],
)
def test_rows_that_a_hard_death_kept_from_being_sent_are_brought_in(
    program: str, start: int, runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    file = write_sweep(tmp_path / "p", program, parameters={"a": {"value": 1}})
    # The client would send nothing before its end, which the first attempt does not see.
    late = {"WANDB_X_FILE_STREAM_TRANSMIT_INTERVAL": "1000"}
    ended = runyard("sweep", str(file), env={**with_python(), **late}, timeout=120)
    assert ended.returncode == 0, ended.stderr
    (trial,) = trials_of(state_folder)
    found = curves(state_folder, trial["id"])["square"]
    assert list(found["steps"]) == list(range(12))
    assert list(found["values"]) == [step * step for step in range(12)]
    # It died by a signal after a checkpoint: not its fault, and not counted as a failure.
    assert "2 attempts: cut, finished" in runyard("show", trial["id"]).stdout
    assert f"going on at step {start}" in runyard("logs", trial["id"]).stdout


def _start_job(sweep: Sweep, folder: Path, *, bounded: bool) -> subprocess.Popen[bytes]:
    times = ["--time", "16s", "--grace", "8s"] if bounded else []
    return subprocess.Popen(
        [sys.executable, "-m", "runyard", "sweep", sweep["id"], "-j", str(SLOTS), *times],
        cwd=folder,
        env={**os.environ, **with_python()},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _hit(home: Home, chance: random.Random) -> bool:
    """Kill an agent, a program or the server; says whether there was one."""
    kind = chance.choices(("program", "agent", "server"), (6, 3, 1))[0]
    if kind == "program":
        found = list(programs_of(home))
    else:
        found = agents_of(home) if kind == "agent" else server_pids(home)
    if not found:
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(chance.choice(sorted(found)), signal.SIGKILL)
        return True
    return False


def _look(home: Home, sweep: Sweep) -> Sweep:
    return ensure_server(home).api.sweeps.sweep(sweep["key"])


def _assert_unbroken(home: Home, trial: Trial) -> None:
    """Every step is there once, with the value that it has without any cut."""
    found = curves(home, trial["id"])
    values = dict(trial["values"])
    assert list(found["loss"]["steps"]) == list(range(STEPS)), (trial, found["loss"]["steps"])
    assert list(found["at"]["values"]) == list(range(STEPS)), trial
    assert list(found["loss"]["values"]) == uncut(values["x"]), trial


def _assert_went_on(starts: Path) -> None:
    """Each attempt went on from the newest checkpoint that there was."""
    lines = [tuple(map(int, line.split())) for line in starts.read_text().splitlines()]
    assert all(start == newest for _, start, newest in lines), lines
    assert [start for _, start, _ in lines] == sorted(start for _, start, _ in lines), lines
