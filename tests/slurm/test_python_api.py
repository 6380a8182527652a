"""`runyard.submit`, `map` and `sweep` from Python, as jobs of a real cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.live.sweeping import with_python
from tests.slurm.yard import Yard

pytestmark = pytest.mark.slurm

LONG = 300.0  # A guard against a hang, never a measure.
WORK = """\
import os, time

def where(number, seconds=0.0):
    time.sleep(seconds)
    return number, os.environ["SLURM_JOB_ID"], os.getcwd()

def fail(word):
    raise KeyError(word)
"""
DRIVE = """\
import json, pathlib
import runyard
from work import where

said = {}
job = runyard.submit(["python", "-c", "import os; print(os.environ['SLURM_CPUS_ON_NODE'])"],
                     cpus=2, time="5m", name="two")
said["program"] = [job.wait(200), job.logs(), job.job_ids, job.exit_code]

call = runyard.submit(where, 7, time="5m")
pathlib.Path("work.py").write_text("def where(*_): return 'another'")  # Jobs run a copy.
said["call"] = [call.result(200), call.job_ids, [run["config"]["number"] for run in call.runs()]]
print(json.dumps(said))
"""
LISTS = """\
import json, time
import runyard
from work import fail, where

said = {}
jobs = runyard.map(where, range(4), at_once=2, time="5m")
said["map"] = [[job.result(200) for job in jobs], jobs[0].job_ids]
failed = runyard.submit(fail, "a word", time="5m")
said["raised"] = [repr(failed.exception(200)), failed.state]

sweep = runyard.sweep({"program": "train.py", "method": "grid",
                       "parameters": {"lr": {"values": [1, 2]}}}, on="slurm", time="5m")
said["sweep"] = [sweep.wait(200)["counts"]["finished"], sweep.logs()]

endless = runyard.submit(["sleep", "600"], time="5m")
while endless.state != "running":
    time.sleep(0.2)
endless.cancel()
said["canceled"] = [endless.wait(100), endless.job_ids]
print(json.dumps(said))
"""
FROM_OUTSIDE = """\
import json, subprocess, time
import runyard

job = runyard.submit(["sleep", "600"], time="5m")
while job.state != "running":
    time.sleep(0.2)
subprocess.run(["scancel", *job.job_ids], check=True)
try:
    job.wait(200)
except runyard.NobodyWorks as error:
    print(json.dumps({"said": str(error), "state": job.state, "id": job.id}))
"""


@pytest.fixture
def yard(module_yard: Yard) -> Yard:
    module_yard.write("work.py", WORK)
    module_yard.write("train.py", "import sys; print('given', sys.argv[1])\n")
    return module_yard


def drive(yard: Yard, program: str) -> dict[str, Any]:
    """What a program that drives runyard on the login node prints."""
    yard.write("drive.py", program)
    slurm = yard.cluster.env
    path = f"{with_python()['PATH'].partition(':')[0]}:{slurm['PATH']}"
    done = subprocess.run(
        [sys.executable, "drive.py"], cwd=yard.project, capture_output=True, text=True,
        timeout=LONG, check=False,
        env={**os.environ, "SLURM_CONF": slurm["SLURM_CONF"], "PATH": path},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def test_a_program_and_a_function_are_jobs(yard: Yard) -> None:
    said = drive(yard, DRIVE)
    state, printed, [number], code = said["program"]
    assert (state, printed, code) == ("finished", "2\n", 0)
    assert yard.api.jobs.job(number)["asked"]["time"] == 300
    [returned, [job_id], numbers] = said["call"]
    assert (returned[:2], numbers) == ([7, job_id], [7])
    assert returned[2] != str(yard.project)


def test_a_list_is_one_array(yard: Yard) -> None:
    said = drive(yard, LISTS)
    results, [array] = said["map"]
    assert [result[0] for result in results] == [0, 1, 2, 3]
    assert yard.api.jobs.job(array)["array"] == "1-4"
    assert said["raised"] == ["KeyError('a word')", "failed"]
    finished, printed = said["sweep"]
    assert finished == 2
    assert "given --lr=2\n" in printed
    state, [job_id] = said["canceled"]
    assert state == "canceled"
    yard.cluster.wait_for(job_id, "CANCELLED")


def test_waiting_ends_with_a_job_that_was_ended_from_outside(yard: Yard) -> None:
    said = drive(yard, FROM_OUTSIDE)
    assert said["said"] == f"{said['id']} is not done, and nobody works on it any more"
    assert said["state"] == "waiting"
