"""Programs that do not end although their run has: ended after a while, and counted as the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from runyard.home import Home
from tests.conftest import RunRunyard
from tests.live.sweeping import programs_of, sweep_json, trials_of, with_python, write_sweep

pytestmark = pytest.mark.live

LONG = 180.0
# What a thread that nobody ends does to a program; or one that has still something to do.
PROGRAM = """\
import sys, threading, time
import wandb
how = sys.argv[1].partition("=")[2]
run = wandb.init()
run.log({"loss": 0.5})
run.finish(exit_code=3 if how == "fails" else 0)
print("the run is over", flush=True)
if how != "works":
    threading.Event().wait()
for step in range(60):
    time.sleep(0.2)
    print("evaluates", step, flush=True)
"""


def test_a_program_that_hangs_is_ended_and_counts_as_its_run(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    hows = ["finishes", "fails", "works"]
    file = write_sweep(tmp_path / "p", PROGRAM, parameters={"how": {"values": hows}})
    # A machine as busy as a test's must not make the one that works look idle.
    env = {**with_python(), "RUNYARD_HUNG_SECONDS": "4", "RUNYARD_LEASE_SECONDS": "6"}
    ended = runyard("sweep", str(file), "-j", "3", "--time", "10m", env=env, timeout=LONG)
    trials = {trial["values"]["how"]: trial for trial in trials_of(state_folder)}
    states = {how: (trial["state"], trial["exit_code"]) for how, trial in trials.items()}
    assert states == {
        "finishes": ("finished", 0),
        "fails": ("failed", 3),
        "works": ("finished", 0),
    }, ended.stderr
    assert all(trial["attempts"] == 1 for trial in trials.values())
    assert sweep_json(runyard)["state"] == "finished"
    for how, said in (("finishes", "has finished"), ("fails", "has failed with exit code 3")):
        assert f"{trials[how]['name']} hangs: its run {said}" in ended.stderr
        assert f"{trials[how]['name']} is ended: its run {said}, and it hangs" in ended.stderr
    assert f"{trials['works']['name']} is ended" not in ended.stderr
    assert "evaluates 59" in runyard("logs", trials["works"]["id"]).stdout
    assert not programs_of(state_folder)
