"""Networks and clocks as people have them: nodes that cannot reach the login node, a login node
that is cut off and comes back, and nodes whose clocks are three minutes apart.

`RUNYARD_ALL_NODES=1`; with `RUNYARD_LONG_JOBS=1` the login node is away for five minutes.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator

import pytest

from tests.conftest import wait_until
from tests.packages import require
from tests.slurm.trainer import TRAINS, sweep_file, uncut

from .config import Plan
from .conftest import open_rig
from .rig import Rig
from .yard import Yard, open_yard

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(
        os.environ.get("RUNYARD_ALL_NODES") != "1",
        reason="RUNYARD_ALL_NODES=1: hosts of their own that fail, minutes each",
    ),
]
AWAY_SECONDS = 300 if os.environ.get("RUNYARD_LONG_JOBS") == "1" else 15
STEPS = 40
LEASE_SECONDS = "5"
# Each node's clock against the controller's and the login node's.
CLOCKS = {"n1": 90, "n2": -90}


def start_sweep(yard: Yard, *options: str, lrs: list[int], pause: float) -> None:
    yard.write("trains.py", TRAINS)
    yard.write("sweep.yaml", sweep_file(lrs, steps=STEPS, pause=pause))
    agents = ("--on", "slurm", "--agents", "2", "--cpus", "4", "--yes", *options)
    yard.type("login", "sweep", "sweep.yaml", *agents)


def wait_for_all(yard: Yard, lrs: list[int]) -> None:
    """Until each trial has ended well, with every step once."""

    def finished() -> list[int]:
        runs = yard.runs("login")
        return sorted(run["lr"] for run in runs if run["state"] == "finished")

    wait_until(lambda: finished() == lrs, 600)
    histories = {run["lr"]: [tuple(row) for row in run["rows"]] for run in yard.runs("login")}
    assert histories == {lr: uncut(STEPS, lr) for lr in lrs}


def has_begun(yard: Yard, *lrs: int) -> bool:
    return all(f"lr {lr} goes on from 0" in yard.logs() for lr in lrs)


def test_nodes_that_cannot_reach_the_login_node(rig: Rig, yard: Yard) -> None:
    require("iptables")
    with rig.refuse("login", *rig.nodes):
        yard.type("login", "server", "submit", "--time", "1h", "--links", "1", "--sbatch=--mem=1G")
        wait_until(lambda: set(yard.servers()) & set(rig.nodes), 180)
        start_sweep(yard, "--time", "20m", "--cpus", "2", lrs=[1, 2], pause=0.1)
        wait_for_all(yard, [1, 2])
        (server,) = yard.servers()
        assert server in rig.nodes


def test_a_login_node_that_is_away_and_comes_back(rig: Rig) -> None:
    with open_yard(rig, "away", {"RUNYARD_LEASE_SECONDS": LEASE_SECONDS}) as yard:
        lrs = [1, 2, 3, 4]
        start_sweep(yard, "--time", "30m", lrs=lrs, pause=0.3)
        wait_until(lambda: has_begun(yard, 1, 2), 180)
        with rig.cut_off("login"):
            # Its server lives, and a lock would not say so here: none is started beside it.
            code, said = yard.ask("n1", "runs")
            assert (code, "does not answer" in said) == (1, True), said
            time.sleep(AWAY_SECONDS)
            assert yard.servers() == ["login"]
        wait_for_all(yard, lrs)
        assert yard.servers() == ["login"]


@pytest.fixture
def skewed() -> Iterator[Yard]:
    require("gcc", "libc6-dev")
    for rig in open_rig(Plan(nodes=2, locks="near")):
        for node, seconds in CLOCKS.items():
            rig.set_clock(node, seconds)
        with open_yard(rig, "clocks", {"RUNYARD_LEASE_SECONDS": LEASE_SECONDS}) as opened:
            yield opened


def test_clocks_three_minutes_apart(skewed: Yard) -> None:
    """Two trials that need more than a job's time: each saves before Slurm ends its job, by
    whichever clock, and another link goes on. A lease is no shorter where the clock is ahead."""
    rig = skewed.rig
    for node, seconds in CLOCKS.items():
        told = rig.run(node, sys.executable, "-c", "import time; print(time.time())")
        assert abs(float(told) - time.time() - seconds) < 30
    start_sweep(skewed, "--time", "3m", "--grace", "30s", "--chain", "7", lrs=[1, 2], pause=5)
    wait_until(lambda: has_begun(skewed, 1, 2), 180)
    wait_for_all(skewed, [1, 2])
    assert "JobState=TIMEOUT" not in rig.run("login", "scontrol", "show", "job")
    assert "time limit was changed" not in skewed.logs()
    # A trial began anew because its job ended, never because its lease seemed to be over.
    attempts = {run["lr"]: len(run["attempts"]) for run in skewed.runs("login")}
    assert all(2 <= count <= 6 for count in attempts.values()), attempts
