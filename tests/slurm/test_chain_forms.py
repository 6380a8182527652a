"""How links follow one another on a real Slurm: by dependency, by going back to the queue, and
before a maintenance.

With `RUNYARD_LONG_JOBS=1`; plans and their calls of sbatch are tested without Slurm always.
"""

from __future__ import annotations

import os
import re
import signal
from typing import Any

import pytest

from tests.node.terminals import until
from tests.slurm.cluster import FINAL_STATES
from tests.slurm.test_chains import (
    by_the_clock,
    chain_state,
    check_one_run,
    starts,
    until_held,
)
from tests.slurm.trainer import TRAINS
from tests.slurm.yard import Yard

pytestmark = [pytest.mark.slurm, by_the_clock]

STEPS = 40
WORDS = ("python", "trains.py", "--steps", str(STEPS), "--hold", "10", "20")


@pytest.fixture(scope="module")
def yard(module_yard: Yard) -> Yard:
    module_yard.write("trains.py", TRAINS)
    return module_yard


def submit(yard: Yard, form: str, *words: str) -> dict[str, Any]:
    yard.write("runyard.yaml", f"profile: {{elasticity: {{chain: {form}}}}}\n")
    return yard.submit("submit", *words, "--", *WORDS)


def cut(yard: Yard, said: dict[str, Any], link: int) -> None:
    """Told as before its time limit, where the program stays."""
    until_held(yard, said, 10 * (link + 1))
    jobs = said["jobs"]
    job = jobs[min(link, len(jobs) - 1)]
    name = "SLURM_JOB_ID" if job["array"] is None else "SLURM_ARRAY_JOB_ID"
    (script,) = yard.batch_shells(f"{name}={job['job_id']}")
    os.kill(script, signal.SIGUSR2)


def test_each_job_waits_for_the_one_before(yard: Yard) -> None:
    said = submit(yard, "dependency", "--chain", "4")
    assert len(said["jobs"]) == 4
    until_held(yard, said, 10)
    assert chain_state(yard, said) == (0, 1, 3)
    cut(yard, said, 0)
    until_held(yard, said, 20)
    assert chain_state(yard, said) == (1, 1, 2)
    assert "chain: link 2 of 4 is at work; 2 more to come" in yard.type("status").stdout
    cut(yard, said, 1)
    yard.ended(said["sweep"], 180)
    check_one_run(yard, said, STEPS, [1])


def test_one_job_goes_back_to_the_queue(yard: Yard) -> None:
    said = submit(yard, "requeue", "--chain", "4")
    (job,) = said["jobs"]
    until_held(yard, said, 10)
    assert chain_state(yard, said) == (0, 1, 3)
    cut(yard, said, 0)
    until_held(yard, said, 20)
    assert chain_state(yard, said) == (1, 1, 2)
    cut(yard, said, 1)
    yard.ended(said["sweep"], 180)
    check_one_run(yard, said, STEPS, [1])
    (record,) = yard.cluster.wait_for(job["job_id"], FINAL_STATES, 180)
    # When the work is done it does not go back once more.
    assert (record["JobState"], record["Restarts"]) == ("COMPLETED", "2")


def test_a_maintenance_is_said_and_links_fit_in_before_it(yard: Yard) -> None:
    yard.cluster.run(
        "scontrol", "create", "reservation", "ReservationName=cleaning", "Nodes=ALL",
        "StartTime=now+6minutes", "Duration=60", "Flags=MAINT", "Users=root",
    )  # fmt: skip
    try:
        alone = yard.type("submit", "--time", "10m", "--dry-run", "--", *WORDS)
        assert "a maintenance (cleaning) lasts from" in alone.stderr
        assert re.search(r"before it with --time [1-6]m or less", alone.stderr)
        said = submit(yard, "array", "--chain", "3", "--time", "10m")
        until(lambda: starts(yard, said), "it began before")
        record = yard.cluster.show_job(f"{said['jobs'][0]['job_id']}_1")[0]
        # How much is left of six minutes is a matter of how busy the machine is.
        maintenance = yard.cluster.run("scontrol", "--oneliner", "show", "reservation").stdout
        (begin,) = re.findall(r"StartTime=(\S+)", maintenance)
        assert record["EndTime"] <= begin
        cut(yard, said, 0)
        cut(yard, said, 1)
        yard.ended(said["sweep"], 180)
        check_one_run(yard, said, STEPS, [1])
    finally:
        yard.cluster.cancel_jobs()
        yard.cluster.run("scontrol", "delete", "ReservationName=cleaning")
