"""Programs that are over and do not end: they are ended after a while, and count as they ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
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


# The client's last message to its service is lost, as the kernel loses it where the service has
# just written something: in one of some thousand programs on a busy machine.
LOSES_ITS_LAST_MESSAGE = """\
import sys
import wandb
from wandb.sdk.lib.service.service_client import ServiceClient
run = wandb.init()
run.log({"loss": 0.5})
run.log({"loss": 0.25})
publish = ServiceClient.publish

async def publish_all_but_the_last(client, request, **words):
    if not request.HasField("inform_teardown"):
        await publish(client, request, **words)

ServiceClient.publish = publish_all_but_the_last
if "--fail=1" in sys.argv:
    raise SystemExit(3)
"""


def test_a_program_whose_last_message_to_the_service_is_lost_ends_with_all_its_rows(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    file = write_sweep(
        tmp_path / "p", LOSES_ITS_LAST_MESSAGE, parameters={"fail": {"values": [0, 1]}}
    )
    program = tmp_path / "p" / "train.py"
    alone = subprocess.Popen(
        [sys.executable, "-m", "runyard", "run", "--", sys.executable, str(program)],
        env={**os.environ, **with_python()}, cwd=tmp_path,
    )  # fmt: skip
    ended = runyard("sweep", str(file), "-j", "2", env=with_python(), timeout=LONG)
    assert alone.wait(LONG) == 0
    trials = {trial["values"]["fail"]: trial for trial in trials_of(state_folder)}
    states = {fail: (trial["state"], trial["exit_code"]) for fail, trial in trials.items()}
    assert states == {0: ("finished", 0), 1: ("failed", 3)}, ended.stderr
    for trial in trials.values():
        assert trial["attempts"] == 1
        assert f"{trial['name']} had done its work and could not exit" in ended.stderr
    runs = json.loads(runyard("runs", "--json").stdout)
    assert sorted(run["state"] for run in runs) == ["failed", "finished", "finished"]
    assert all(run["summary"]["loss"] == 0.25 for run in runs)
