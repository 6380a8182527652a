"""Work that is longer than a job: the next link goes on where the last one was cut off.

`RUNYARD_LONG_JOBS=1` has links cut by Slurm's time limit, whose grain is a minute; the short forms
have Slurm send the signal that comes before it.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.live.small_image import host_mounts, make_image
from tests.node.terminals import until
from tests.slurm.cluster import FINAL_STATES
from tests.slurm.trainer import TRAINS, history, sweep_file, uncut
from tests.slurm.yard import Yard

pytestmark = pytest.mark.slurm

by_the_clock = pytest.mark.skipif(
    os.environ.get("RUNYARD_LONG_JOBS") != "1",
    reason="RUNYARD_LONG_JOBS=1: Slurm's time limits have a grain of a minute",
)
LINKS = 4


@pytest.fixture(scope="module")
def yard(module_yard: Yard) -> Yard:
    module_yard.write("trains.py", TRAINS)
    return module_yard


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_image(tmp_path_factory.mktemp("images") / "small")


def starts(yard: Yard, said: dict[str, Any], lr: int = 1) -> list[int]:
    """From which steps a trial went on."""
    return [int(one) for one in re.findall(rf"lr {lr} goes on from (\d+)", yard.logs(said))]


def until_held(yard: Yard, said: dict[str, Any], step: int, lrs: Sequence[int] = (1,)) -> None:
    """Until trials stay where their program is told to."""
    words = [f"lr {lr} holds at {step}\n" for lr in lrs]
    until(lambda: all(one in yard.logs(said) for one in words), f"hold at {step}", 180)


def chain_state(yard: Yard, said: dict[str, Any]) -> tuple[int, int, int]:
    """As status tells of it: links that are over, at work, to come."""
    told = json.loads(yard.type("status", said["sweep"], "--json").stdout)
    found = told["sweeps"][0]["chain"]
    return found["over"], found["at_work"], found["to_come"]


def cut(yard: Yard, job: str, link: int) -> None:
    """As Slurm does it before the time limit: a signal to the batch shell. (By `scancel --batch`
    release 22.05 cannot reach one task of an array alone.)"""
    of = f"SLURM_ARRAY_JOB_ID={job}", f"SLURM_ARRAY_TASK_ID={link}"
    (script,) = yard.batch_shells(*of)
    os.kill(script, signal.SIGUSR2)


def check_one_run(yard: Yard, said: dict[str, Any], steps: int, lrs: list[int]) -> None:
    """Each trial ended as one run with the curve of an uncut one; no link computed after that."""
    found = yard.api.sweeps.find(said["sweep"])
    assert found["counts"]["finished"] == len(lrs)
    for job in said["jobs"]:
        # What is left of the chain ends at once.
        yard.cluster.wait_for(job["job_id"], FINAL_STATES, 180)
    trials = {trial["values"].get("lr", 1): trial for trial in yard.api.sweeps.trials(found["key"])}
    assert sorted(trials) == lrs
    for lr, trial in trials.items():
        assert history(yard.api, trial["id"]) == uncut(steps, lr)
        begun = starts(yard, said, lr)
        assert (min(begun), len(begun)) == (0, len(set(begun))), "a link began where another had"
        assert yard.logs(said).count(f"lr {lr} ended at {steps}") == 1


def test_a_run_of_four_links_is_as_an_uncut_one(yard: Yard) -> None:
    words = ("python", "trains.py", "--steps", "40", "--hold", "10", "20", "30")
    said = yard.submit("submit", "--chain", "6", "--time", "5m", "--", *words)
    (job,) = said["jobs"]
    assert job["array"] == "1-6"
    for link in range(1, LINKS):
        until_held(yard, said, 10 * link)
        if link == 2:
            assert chain_state(yard, said) == (1, 1, 4)
        cut(yard, job["job_id"], link)
    yard.ended(said["sweep"], 180)
    assert len(starts(yard, said)) == LINKS
    check_one_run(yard, said, 40, [1])


def test_two_trials_of_a_sweep_in_a_container_go_on_side_by_side(yard: Yard, image: Path) -> None:
    yard.write("sweep.yaml", sweep_file([1, 2], steps=20, hold=10, python=sys.executable))
    said = yard.submit(
        "sweep",
        "sweep.yaml",
        "--on",
        "slurm",
        "--agents",
        "2",
        "--chain",
        "3",
        *in_container(yard, image),
    )
    (job,) = said["jobs"]
    assert job["array"] == "1-6"
    until_held(yard, said, 10, (1, 2))
    for link in (1, 2):
        cut(yard, job["job_id"], link)
    yard.ended(said["sweep"], 180)
    check_one_run(yard, said, 20, [1, 2])
    assert all(len(starts(yard, said, lr)) == 2 for lr in (1, 2))


def in_container(yard: Yard, image: Path) -> tuple[str, ...]:
    mounts = [word for mount in host_mounts() for word in ("--mount", mount)]
    return ("--environment", "charliecloud", "--container", str(image), *mounts)


@by_the_clock
def test_four_times_the_time_limit(yard: Yard, image: Path) -> None:
    """One run, three trials of a sweep, and one run in a container, at the same time."""
    steps, pause = 1200, 0.2
    limit = ("--time", "1m", "--grace", "10s", "--chain", "9")
    trains = ("trains.py", "--steps", str(steps), "--pause", str(pause))
    yard.write("long.yaml", sweep_file([1, 2, 3], steps=steps, pause=pause))
    alone = yard.submit("submit", *limit, "--", "python", *trains)
    swept = yard.submit("sweep", "long.yaml", "--on", "slurm", "--agents", "3", *limit)
    boxed = yard.submit("submit", *limit, *in_container(yard, image), "--", sys.executable, *trains)
    for said, lrs in ((alone, [1]), (swept, [1, 2, 3]), (boxed, [1])):
        yard.ended(said["sweep"], 900)
        check_one_run(yard, said, steps, lrs)
        for lr in lrs:
            assert len(starts(yard, said, lr)) > LINKS, yard.logs(said)


# Knows of nothing but its own file; written aside, then renamed.
OWN_STATE = """\
import os, pathlib, sys, time
(file,) = (pathlib.Path(word.partition("=")[2]) for word in sys.argv[1:])
step = int(file.read_text()) if file.exists() else 0
print("from", step, flush=True)
while step < 40:
    time.sleep(0.1)
    step += 1
    file.with_suffix(".new").write_text(str(step))
    file.with_suffix(".new").rename(file)
print("ended at", step, flush=True)
"""


def test_a_program_with_a_state_file_of_its_own(yard: Yard) -> None:
    yard.write("own.py", OWN_STATE)
    state = yard.project.parent / "state file"
    said = yard.submit("submit", "--chain", "4", "--", "python", "own.py", f"-statefile={state}")
    (job,) = said["jobs"]
    until(lambda: state.exists() and int(state.read_text()) > 3, "it has begun")
    yard.cluster.run("scancel", f"{job['job_id']}_1")  # As the time limit does, TERM and then KILL.
    found = yard.ended(said["sweep"])
    assert found["counts"]["finished"] == 1
    yard.cluster.wait_for(job["job_id"], FINAL_STATES, 180)
    first, second = (int(one) for one in re.findall(r"from (\d+)", yard.logs(said)))
    assert (first, second > 3) == (0, True)
    assert yard.logs(said).count("ended at 40") == 1
