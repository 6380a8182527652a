"""A sweep while its nodes and its server fail: every step of every trial is there once.

`RUNYARD_ALL_NODES=1`; with `RUNYARD_LONG_JOBS=1` forty trials on four nodes, and a node is cut off
for three minutes.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import wait_until
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

LONG = os.environ.get("RUNYARD_LONG_JOBS") == "1"
NODES, TRIALS, CUT_SECONDS = (4, 40, 180) if LONG else (2, 4, 12)
STEPS, PAUSE = (60, 0.5) if LONG else (40, 0.3)
# As docs/training.md says for nodes that die: else the client keeps a step's row until the next
# one, and a node that dies right after a checkpoint takes it along.
COMMITS = TRAINS.replace("step=step)", "step=step, commit=True)")
# How long nobody may hear of an agent before its trial is somebody else's.
LEASE_SECONDS = "5"


@pytest.fixture(scope="module")
def four_nodes(request: pytest.FixtureRequest) -> Iterator[Rig]:
    if LONG:
        yield from open_rig(Plan(nodes=NODES, logins=1, locks="near"))
    else:
        yield request.getfixturevalue("rig")


def test_a_node_cut_off_one_without_power_and_a_server_killed_twice(four_nodes: Rig) -> None:
    settings = {"RUNYARD_LEASE_SECONDS": LEASE_SECONDS}
    with open_yard(four_nodes, "failing", settings) as yard:
        yard.write("trains.py", COMMITS)
        lrs = list(range(1, TRIALS + 1))
        yard.write("sweep.yaml", sweep_file(lrs, steps=STEPS, pause=PAUSE))
        agents = ("--on", "slurm", "--agents", str(NODES), "--cpus", "4", "--time", "60m", "--yes")
        yard.type("login", "sweep", "sweep.yaml", *agents)
        wait_until(lambda: all(_has_begun(yard, node) for node in yard.rig.nodes))
        # Nobody types a command while the server is away: it comes back for the agents.
        yard.kill_server("login")
        cut_at = time.time()
        with yard.rig.cut_off("n1"):
            time.sleep(CUT_SECONDS)
        healed_at = time.time()
        yard.rig.power_off("n2")
        yard.kill_server("login")
        wait_until(lambda: len(yard.server_pids("login")) == 1, 120)
        yard.rig.power_on("n2")
        wait_until(lambda: _finished(yard) == lrs, 900)
        runs = yard.runs("login")
        histories = {run["lr"]: [tuple(row) for row in run["rows"]] for run in runs}
        assert histories == {lr: uncut(STEPS, lr) for lr in lrs}
        assert yard.servers() == ["login"]
        # n2's time belongs to Slurm, which decides when a node that was off gets jobs again.
        for node in set(yard.rig.nodes) - {"n2"}:
            away = (cut_at, healed_at) if node == "n1" else (0.0, 0.0)
            pauses = _pauses(runs, node, away)
            assert max(pauses, default=0.0) < float(LEASE_SECONDS) + 30, (node, pauses)


def _pauses(runs: list[dict[str, Any]], node: str, away: tuple[float, float]) -> list[float]:
    """How long the node ran no trial while some had not begun; without the time it was away."""
    attempts = sorted(
        (begun, ended)
        for run in runs
        for where, begun, ended in run["attempts"]
        if where == node and ended is not None
    )
    last_begun = max(min(begun for _, begun, _ in run["attempts"]) for run in runs)
    return [
        later - ended - max(0.0, min(later, away[1]) - max(ended, away[0]))
        for (_, ended), (later, _) in itertools.pairwise(attempts)
        if ended < last_begun
    ]


def _has_begun(yard: Yard, node: str) -> bool:
    logs = (yard.rig.disk / yard.name).rglob("hpc_outputs/*.log")
    texts = [file.read_text(errors="replace") for file in logs]
    return any(f" on {node}," in text and "goes on from" in text for text in texts)


def _finished(yard: Yard) -> list[int]:
    runs = yard.runs("login")
    time.sleep(1)  # Each question loads a Python.
    return sorted(run["lr"] for run in runs if run["state"] == "finished")
