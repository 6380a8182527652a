"""Jobs that lose their place: pushed out, their node gone, the controller gone. All go on.

Each trial's history is that of a run that nobody touched, step by step.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.slurm.cluster import FINAL_STATES, SlurmCluster
from tests.slurm.test_chains import starts, until
from tests.slurm.trainer import TRAINS, history, uncut
from tests.slurm.yard import Yard, batch_shells, open_yard

pytestmark = pytest.mark.slurm

STEPS = 20
# Steps 5 to 7 are logged after the last checkpoint: they come again.
HELD = 8
WORDS = ("python", "trains.py", "--steps", str(STEPS), "--hold", str(HELD), "--pause", "0.02")


@pytest.fixture(scope="module")
def yard(
    tmp_path_factory: pytest.TempPathFactory,
    module_environment: pytest.MonkeyPatch,
    slurm_cluster: SlurmCluster,
) -> Iterator[Yard]:
    folder = tmp_path_factory.mktemp("interruptions")
    with open_yard(folder, module_environment, slurm_cluster) as opened:
        opened.write("trains.py", TRAINS)
        yield opened


def submit(yard: Yard, *words: str) -> tuple[dict[str, Any], str]:
    """A trainer that is on its way: what was said of it, and its job's number."""
    said = yard.submit("submit", *words, "--", *WORDS)
    until(lambda: f"holds at {HELD}" in yard.logs(said), "it has begun")
    return said, said["jobs"][0]["job_id"]


def check_went_on(yard: Yard, said: dict[str, Any], from_step: int) -> None:
    found = yard.ended(said["sweep"], 180)
    (trial,) = yard.api.sweeps.trials(found["key"])
    assert (trial["state"], trial["attempts"]) == ("finished", 2), yard.logs(said)
    assert starts(yard, said) == [0, from_step]
    assert history(yard.api, trial["id"]) == uncut(STEPS)


def push_out(yard: Yard, node: str) -> None:
    """A job of a partition that goes before the others takes the whole node."""
    urgent = yard.cluster.submit("true", "--partition=high", f"--nodelist={node}", "--exclusive")
    yard.cluster.wait_for(urgent, "COMPLETED", 90)


def test_pushed_out_and_back_in_the_queue(yard: Yard) -> None:
    said, job = submit(yard, "--sbatch=--nodelist=n1")
    push_out(yard, "n1")
    # It had the time to save when it was told.
    check_went_on(yard, said, HELD + 1)
    (record,) = yard.cluster.wait_for(job, FINAL_STATES, 90)
    assert (record["JobState"], record["Restarts"]) == ("COMPLETED", "1")


def test_pushed_out_for_good_the_next_link_goes_on(yard: Yard) -> None:
    yard.cluster.run(
        "scontrol", "create", "PartitionName=scrap", "Nodes=ALL", "State=UP", "PreemptMode=CANCEL",
        "PriorityTier=1",
    )  # fmt: skip
    try:
        said, job = submit(yard, "--chain", "2", "--partition", "scrap", "--sbatch=--nodelist=n1")
        push_out(yard, "n1")
        check_went_on(yard, said, HELD + 1)
        tasks = yard.cluster.wait_for(job, FINAL_STATES | {"PREEMPTED"}, 90)
        assert sorted(task["JobState"] for task in tasks) == ["COMPLETED", "PREEMPTED"]
    finally:
        yard.cluster.run("scontrol", "delete", "PartitionName=scrap")


def test_a_node_dies_with_all_that_runs_on_it(yard: Yard) -> None:
    said, job = submit(yard, "--sbatch=--nodelist=n[2-3]", "--nodes", "1")
    ((record),) = yard.cluster.show_job(job)
    with yard.cluster.without_node(record["NodeList"]):
        # What the controller finds out by itself, after five minutes (SlurmdTimeout).
        down = (f"nodename={record['NodeList']}", "state=down", "reason=no power")
        yard.cluster.run("scontrol", "update", *down)
        # From the last checkpoint: nobody was told anything.
        check_went_on(yard, said, 5)


def test_the_controller_is_gone_when_a_link_ends(yard: Yard) -> None:
    said, job = submit(yard, "--chain", "3")
    (script,) = batch_shells(f"SLURM_ARRAY_JOB_ID={job}")
    with yard.cluster.without_controller():
        os.kill(script, signal.SIGUSR2)
        key = yard.api.sweeps.find(said["sweep"])["key"]
        until(lambda: yard.api.sweeps.trials(key)[0]["state"] == "waiting", "it was given back")
        # What is known is told, and that it is old.
        told = json.loads(yard.type("status", said["sweep"], "--json").stdout)
        assert told["slurm"]["trouble"]
    check_went_on(yard, said, HELD + 1)
    yard.cluster.wait_for(job, FINAL_STATES, 90)
