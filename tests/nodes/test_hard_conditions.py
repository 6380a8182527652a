"""Nodes as people have them: a full /tmp, one that is cleaned under a job, a slow network, and two
login nodes typed on in turn. `RUNYARD_ALL_NODES=1`; with `RUNYARD_LONG_JOBS=1` 200 commands."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.conftest import wait_until
from tests.slurm.trainer import TRAINS, uncut

from .rig import Rig
from .yard import Yard

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(
        os.environ.get("RUNYARD_ALL_NODES") != "1",
        reason="RUNYARD_ALL_NODES=1: hosts of their own that fail, minutes each",
    ),
]
COMMANDS = 200 if os.environ.get("RUNYARD_LONG_JOBS") == "1" else 10
STEPS = 30


def fill_tmp(rig: Rig) -> None:
    rig.ask("n1", "dd", "if=/dev/zero", "of=/tmp/full", "bs=1M", cwd=Path("/"))
    assert "100%" in rig.run("n1", "df", "/tmp")


def clean_tmp(rig: Rig) -> None:
    rig.run("n1", "sh", "-c", "rm -rf /tmp/runyard* /tmp/tmp* /tmp/wandb*")


def slow_down(rig: Rig) -> None:
    rig.slow_down("n1", "256kbit")


CONDITIONS: Mapping[str, Callable[[Rig], None]] = {
    "a full /tmp": fill_tmp,
    "a /tmp that is cleaned": clean_tmp,
    "a slow network": slow_down,
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_a_program_logs_every_step(rig: Rig, yard: Yard, name: str) -> None:
    yard.write("trains.py", TRAINS)
    words = ("--steps", str(STEPS), "--pause", "0.3", "--lr", "1")
    options = ("--sbatch=--nodelist=n1", "--yes", "--time", "30m")
    yard.type("login", "submit", *options, "--", "python", "trains.py", *words)
    try:
        wait_until(lambda: "goes on from 0" in yard.logs())
        CONDITIONS[name](rig)
        wait_until(lambda: "finished" in yard.type("login", "runs"), 300)
    finally:
        rig.run("n1", "rm", "-f", "/tmp/full")
        rig.ask("n1", "tc", "qdisc", "del", "dev", "eth0", "root")
    (run,) = yard.runs("login")
    assert [tuple(row) for row in run["rows"]] == uncut(STEPS)


def test_two_login_nodes_typed_on_in_turn_have_one_server(yard: Yard) -> None:
    yard.type("login", "server", "start", "--listen", "cluster")
    names = [f"typed-{number:03}" for number in range(COMMANDS)]
    for number, name in enumerate(names):
        yard.type("login2" if number % 2 else "login", "run", "--name", name, "--", "true")
        assert yard.servers() == ["login"]
    shown = yard.type("login2", "runs", "--limit", "1000", "--json")
    assert [name for name in names if f'"{name}"' not in shown] == []
    # The server dies: it comes back by itself, or whoever types first starts it. There is one.
    yard.kill_server("login")
    yard.type("login2", "runs")
    (server,) = yard.servers()
    yard.type("login", "run", "--name", "both", "--", "true")
    assert yard.servers() == [server]
    assert '"both"' in yard.type("login2", "runs", "--limit", "1000", "--json")
