"""Agents, keepers and the server are killed with -9 again and again, and nothing is lost."""

from __future__ import annotations

import os
import random
import subprocess
import time
from pathlib import Path

import pytest

from runyard.actions.sweeping.agent_process import agent_command
from runyard.actions.sweeping.slots import Slots
from runyard.home import Home
from tests.conftest import server_pids
from tests.live.sweeping import agents_of, api_of, kill, processes_of, with_python, write_sweep
from tests.node.terminals import until

pytestmark = pytest.mark.live

# RUNYARD_ALL_KILLS=1: the size that the sweeps' promise is about. The suite has a smaller one.
POINTS, AGENTS, KILLS = (200, 8, 50) if os.environ.get("RUNYARD_ALL_KILLS") else (24, 3, 8)
SLOTS = 2
# Holds a lock while it runs: a second one of the same trial at the same time would be seen.
PROGRAM = """\
import fcntl, os, time
name = os.environ["RUNYARD_TRIAL"]
lock = open(f"{name}.lock", "a")
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    open("twice", "a").write(name + "\\n")
time.sleep(0.3)
open(f"{name}.done", "a").write("done\\n")
"""


def test_every_point_of_a_grid_is_run_to_its_end_by_real_agents(
    state_folder: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNYARD_LEASE_SECONDS", "5")
    chance, folder = random.Random(3), tmp_path / "p"
    file = write_sweep(
        folder, PROGRAM, parameters={"x": {"values": list(range(POINTS))}},
        runyard={"retries": {"node": 1000}},
    )  # fmt: skip
    sweep = api_of(state_folder).sweeps.create(file.read_text(), project="p", folder=str(folder))
    control, held = os.pipe()
    started: list[subprocess.Popen[bytes]] = []

    def keep_agents_at_work() -> None:
        alive = [process for process in started if process.poll() is None]
        for _ in range(AGENTS - len(alive)):
            command = agent_command(
                sweep["key"],
                slots=Slots(SLOTS),
                folder=str(folder),
                control=control,
                quiet=True,
            )
            started.append(
                subprocess.Popen(
                    command,
                    cwd=folder,
                    env={**os.environ, **with_python()},
                    pass_fds=[control],
                    start_new_session=True,
                )
            )

    def counts() -> dict[str, int]:
        return api_of(state_folder).sweeps.sweep(sweep["key"])["counts"]

    try:
        for _ in range(KILLS):
            keep_agents_at_work()
            before = counts()["finished"]
            time.sleep(chance.uniform(0.2, 1.0))
            # An agent or a keeper, and now and then the server.
            pids = server_pids(state_folder) if chance.random() < 0.3 else agents_of(state_folder)
            if pids:
                kill(chance.choice(pids))
            assert counts()["finished"] >= before
        end = time.monotonic() + 300
        while counts()["finished"] < POINTS and time.monotonic() < end:
            keep_agents_at_work()
            time.sleep(0.2)
    finally:
        os.close(control)
        os.close(held)
        for process in started:
            process.terminate()
        for process in started:
            process.wait(180)
    assert counts()["finished"] == POINTS
    assert not (folder / "twice").exists()
    trials = api_of(state_folder).sweeps.trials(sweep["key"])
    assert len({trial["values"]["x"] for trial in trials}) == len(trials) == POINTS
    assert all((folder / f"{trial['name']}.done").exists() for trial in trials)
    until(lambda: not processes_of(state_folder, "train|node"), "no process left behind", 180)
