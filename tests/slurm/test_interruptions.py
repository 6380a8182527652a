"""Jobs that lose their place: pushed out, their node gone, the controller gone. All go on.

Each trial's history is that of a run that nobody touched, step by step. `RUNYARD_LONG_JOBS=1` also
pushes jobs out, and waits until Slurm itself notices that a node is dead.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.node.terminals import until
from tests.slurm.cluster import FINAL_STATES, SlurmCluster
from tests.slurm.test_chains import by_the_clock, starts, until_held
from tests.slurm.trainer import TRAINS, history, uncut
from tests.slurm.yard import Yard

pytestmark = pytest.mark.slurm

STEPS = 20
# Steps 5 to 7 are logged after the last checkpoint: they come again.
SAVED, HELD = 5, 8
LONG = os.environ.get("RUNYARD_LONG_JOBS") == "1"
WORDS = ("python", "trains.py", "--steps", str(STEPS), "--hold", str(HELD))


@dataclass(frozen=True)
class Trainer:
    """A trainer that is on its way: what was said of it, and its job's number."""

    said: dict[str, Any]

    @property
    def job(self) -> str:
        return str(self.said["jobs"][0]["job_id"])


@pytest.fixture(scope="module")
def yard(
    module_environment: pytest.MonkeyPatch, module_yard: Yard, slurm_cluster: SlurmCluster
) -> Iterator[Yard]:
    # How long nobody may hear of a dead node before its trial is somebody else's.
    module_environment.setenv("RUNYARD_LEASE_SECONDS", "5")
    # A partition whose jobs are ended for others, and not sent back to the queue.
    change = ("scontrol", "update", "PartitionName=short")
    slurm_cluster.run(*change, "MaxTime=INFINITE", "PreemptMode=CANCEL")
    module_yard.write("trains.py", TRAINS)
    yield module_yard
    slurm_cluster.run(*change, "MaxTime=1", "PreemptMode=REQUEUE")


@pytest.fixture(scope="module")
def trainers(yard: Yard) -> dict[str, Trainer]:
    """One for each test, all begun at the same time, each where nothing else is to happen."""
    asked = {
        "node": ("--sbatch=--exclude=n1,n2",),
        "controller": ("--sbatch=--nodelist=n4", "--chain", "3"),
    }
    if LONG:
        asked["urgent"] = ("--sbatch=--nodelist=n1",)
        asked["scrap"] = ("--sbatch=--nodelist=n2", "--partition", "short", "--chain", "2")
    found = {
        name: Trainer(yard.submit("submit", *words, "--", *WORDS)) for name, words in asked.items()
    }
    for one in found.values():
        until_held(yard, one.said, HELD)
    return found


def check_went_on(yard: Yard, said: dict[str, Any], from_step: int, seconds: float = 180) -> None:
    found = yard.ended(said["sweep"], seconds)
    (trial,) = yard.api.sweeps.trials(found["key"])
    assert (trial["state"], trial["attempts"]) == ("finished", 2), yard.logs(said)
    assert starts(yard, said) == [0, from_step], yard.logs(said)
    assert history(yard.api, trial["id"]) == uncut(STEPS)


def push_out(yard: Yard, node: str) -> None:
    """A job of a partition that goes before the others takes the whole node."""
    urgent = yard.cluster.submit("true", "--partition=high", f"--nodelist={node}", "--exclusive")
    yard.cluster.wait_for(urgent, "COMPLETED", 180)


@by_the_clock
def test_pushed_out_and_back_in_the_queue(yard: Yard, trainers: dict[str, Trainer]) -> None:
    one = trainers["urgent"]
    push_out(yard, "n1")
    # Slurm asks every process to end, and this one knows no such signal: from its last checkpoint.
    check_went_on(yard, one.said, SAVED)
    (record,) = yard.cluster.wait_for(one.job, FINAL_STATES, 180)
    assert (record["JobState"], record["Restarts"]) == ("COMPLETED", "1")


@by_the_clock
def test_pushed_out_for_good_the_next_link_goes_on(
    yard: Yard, trainers: dict[str, Trainer]
) -> None:
    one = trainers["scrap"]
    push_out(yard, "n2")
    check_went_on(yard, one.said, SAVED)
    tasks = yard.cluster.wait_for(one.job, FINAL_STATES | {"PREEMPTED"}, 180)
    assert sorted(task["JobState"] for task in tasks) == ["COMPLETED", "PREEMPTED"]


def test_a_node_dies_with_all_that_runs_on_it(yard: Yard, trainers: dict[str, Trainer]) -> None:
    one = trainers["node"]
    (record,) = yard.cluster.show_job(one.job)
    node = record["NodeList"]
    with yard.cluster.without_node(node):
        if not LONG:  # What the controller finds out by itself, after five minutes.
            down = (f"nodename={node}", "state=down", "reason=no power")
            yard.cluster.run("scontrol", "update", *down)
        check_went_on(yard, one.said, SAVED, 700 if LONG else 180)
        (record,) = yard.cluster.wait_for(one.job, FINAL_STATES, 180)
        assert record["NodeList"] != node


def test_the_controller_is_gone_when_a_link_ends(yard: Yard, trainers: dict[str, Trainer]) -> None:
    one = trainers["controller"]
    (script,) = yard.batch_shells(f"SLURM_ARRAY_JOB_ID={one.job}")
    with yard.cluster.without_controller():
        os.kill(script, signal.SIGUSR2)
        key = yard.api.sweeps.find(one.said["sweep"])["key"]
        until(lambda: yard.api.sweeps.trials(key)[0]["state"] == "waiting", "it was given back")
        # What is known is told, and that it is old.
        told = json.loads(yard.type("status", one.said["sweep"], "--json").stdout)
        assert told["slurm"]["trouble"]
    # It had the time to save.
    check_went_on(yard, one.said, HELD + 1)
    yard.cluster.wait_for(one.job, FINAL_STATES, 180)
