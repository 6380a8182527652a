"""A grid under fire: agents and server are killed with -9 again and again, and nothing is lost."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard.client.discover import ensure_server, start_server
from runyard.home import Home
from runyard.shapes.sweeps import Sweep
from tests.conftest import server_pids

pytestmark = pytest.mark.live

# RUNYARD_ALL_KILLS=1: the size that the sweeps' promise is about. The suite has a smaller one.
POINTS, AGENTS, KILLS = (200, 8, 50) if os.environ.get("RUNYARD_ALL_KILLS") else (30, 3, 6)
SMALL_AGENT = Path(__file__).with_name("small_agent.py")


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Agents that a test started; they end with it."""
    agents: list[subprocess.Popen[bytes]] = []
    yield agents
    for agent in agents:
        agent.kill()
        agent.wait()


def test_every_point_of_a_grid_finishes_exactly_once(
    state_folder: Home,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    started: list[subprocess.Popen[bytes]],
) -> None:
    monkeypatch.setenv("RUNYARD_LEASE_SECONDS", "2")
    chance = random.Random(7)
    (tmp_path / "now").mkdir()
    api = start_server(state_folder).api
    sweep = api.sweeps.create(
        {
            "method": "grid",
            "parameters": {
                "x": {"values": list(range(POINTS // 10))},
                "y": {"values": list(range(10))},
            },
            # It is not the trials' fault how often their nodes die here.
            "runyard": {"retries": {"node": 1000}},
        },
        project="fire",
    )

    def start_agent() -> None:
        command = [sys.executable, SMALL_AGENT, state_folder.path, str(sweep["key"]), tmp_path]
        started.append(subprocess.Popen([str(word) for word in command], start_new_session=True))

    for _ in range(AGENTS):
        start_agent()
    _wait_until(state_folder, sweep, lambda now: now["counts"]["finished"] > 0)
    for _ in range(KILLS):
        time.sleep(chance.uniform(0.1, 0.8))
        if chance.random() < 0.3:
            for pid in server_pids(state_folder):
                os.kill(pid, signal.SIGKILL)
        else:
            victim = chance.choice([one for one in started if one.poll() is None] or started)
            victim.kill()
            victim.wait()
            start_agent()
    over = _wait_until(state_folder, sweep, lambda now: now["state"] != "running")

    assert (over["state"], over["cause"]) == ("finished", None)
    assert not (tmp_path / "twice").exists(), "a trial ran twice at the same time"
    api = ensure_server(state_folder).api
    trials = api.sweeps.trials(sweep["key"])
    assert {trial["state"] for trial in trials} == {"finished"}
    points = Counter((trial["values"]["x"], trial["values"]["y"]) for trial in trials)
    assert len(points) == POINTS
    assert set(points.values()) == {1}
    for trial in trials:
        attempts = api.run(trial["id"])["attempts"]
        assert [one["exit_code"] for one in attempts].count(0) == 1, trial
        assert len(attempts) == trial["attempts"]
    assert over["attempts"] > POINTS, "nobody was hit while at work"
    for agent in started:
        agent.wait(180)


def _wait_until(home: Home, sweep: Sweep, is_so: object) -> Sweep:
    assert callable(is_so)
    end = time.monotonic() + 600
    while time.monotonic() < end:
        found = ensure_server(home).api.sweeps.sweep(sweep["key"])
        if is_so(found):
            return found
        time.sleep(0.3)
    raise AssertionError(f"it is still {found['state']}: {found['counts']}")
