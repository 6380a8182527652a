"""Chains of a sweep whose trials outlast a link.

`RUNYARD_LONG_JOBS=1` has six trials of 90 s and two of ten minutes in links of a minute.
"""

from __future__ import annotations

import json
import os
import re

import pytest

from tests.slurm.cluster import FINAL_STATES
from tests.slurm.trainer import TRAINS, history, sweep_file, uncut
from tests.slurm.yard import Yard

pytestmark = pytest.mark.slurm

by_the_clock = pytest.mark.skipif(
    os.environ.get("RUNYARD_LONG_JOBS") != "1",
    reason="RUNYARD_LONG_JOBS=1: Slurm's time limits have a grain of a minute",
)
# Of the minute, programs have 15 s: the shortest that a link can be here.
SHORT_LINK = ("--time", "1m", "--grace", "45s", "--agents", "1")
NEVER_SAVES = """\
import time
time.sleep(16)
"""


@pytest.fixture(scope="module")
def yard(module_yard: Yard) -> Yard:
    module_yard.write("trains.py", TRAINS)
    module_yard.write("never_saves.py", NEVER_SAVES)
    return module_yard


def test_a_chain_is_not_spent_on_trials_that_are_too_long(yard: Yard) -> None:
    command = ["python", "${program}"]
    file = {"program": "never_saves.py", "method": "grid", "command": command}
    yard.write("never.yaml", json.dumps({**file, "parameters": {"lr": {"values": [1, 2]}}}))
    yard.type("sweep", "never.yaml", "--count", "1")
    (sweep,) = yard.api.sweeps.sweeps(limit=1)
    assert sweep["counts"]["finished"] == 1
    chain = ("--on", "slurm", *SHORT_LINK, "--chain", "4")
    said = yard.submit("agents", "add", sweep["id"], *chain)
    (job,) = said["jobs"]
    # The first link takes the others, which have not begun, out of the queue.
    yard.cluster.wait_for(job["job_id"], FINAL_STATES, 180)
    logs = yard.logs(said)
    assert logs.count("its programs are too long for such jobs") == 1
    assert re.search(r"none finished in less than \d+ s, and none has saved", logs)
    assert "the links of this chain that have not begun are cancelled" in logs
    assert "ended with code 1" in logs
    assert len(yard.api.sweeps.trials(sweep["key"])) == 1, "nothing was begun"
    assert "too long for such jobs" in yard.type("status", sweep["id"]).stdout


@by_the_clock
def test_trials_that_outlast_a_link(yard: Yard) -> None:
    """Six of a minute and a half, and at the same time two of ten minutes."""
    chain = ("--on", "slurm", "--agents", "1", "--time", "1m", "--chain")
    yard.write("middle.yaml", sweep_file([1, 2, 3, 4, 5, 6], steps=450, pause=0.2))
    yard.write("long.yaml", sweep_file([1, 2], steps=3000, pause=0.2))
    middle = yard.submit("sweep", "middle.yaml", *chain, "20")
    long = yard.submit("sweep", "long.yaml", *chain, "36")
    for said, lrs, steps in ((middle, range(1, 7), 450), (long, (1, 2), 3000)):
        found = yard.ended(said["sweep"], 3600)
        assert found["counts"]["finished"] == len(lrs), yard.logs(said)
        for trial in yard.api.sweeps.trials(found["key"]):
            assert history(yard.api, trial["id"]) == uncut(steps, trial["values"]["lr"])
            assert trial["attempts"] > 1
