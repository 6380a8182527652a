"""Many runs at once, and a server that is killed under them."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from runyard.home import Home, read_discovery
from tests.conftest import RunRunyard, server_pids
from tests.live.programs import LOG_STEPS, curves, list_runs, start_run, write_program

pytestmark = pytest.mark.live


def test_twenty_runs_at_once_from_a_cold_start(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    program = write_program(tmp_path / "project", LOG_STEPS)
    started = [start_run(program, "30", "1000") for _ in range(20)]
    assert [one.wait(300) for one in started] == [0] * 20

    assert len(server_pids(state_folder)) == 1
    assert state_folder.log.read_text().count(" serves ") == 1
    runs = list_runs(runyard)
    assert len(runs) == 20
    assert {run["state"] for run in runs} == {"finished"}
    assert len({run["name"] for run in runs}) == 20
    for run in runs:
        assert run["config"] == {"steps": 30}
        kept = curves(state_folder, run["id"])
        assert kept["value"]["steps"] == list(range(30))
        assert kept["nested.half"]["count"] == 30


def test_a_killed_server_loses_nothing_and_doubles_nothing(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    steps, hertz = 500, 50
    program = write_program(tmp_path / "project", LOG_STEPS)
    assert runyard("server", "start").returncode == 0
    url = _url(state_folder)
    started = [start_run(program, str(steps), str(hertz)) for _ in range(5)]
    _wait_for_steps(runyard, 5)
    for _ in range(3):
        time.sleep(random.uniform(0.5, 2.5))
        for pid in server_pids(state_folder):
            os.kill(pid, signal.SIGKILL)
        # Any command brings it back, where its clients look for it.
        assert runyard("runs").returncode == 0
        assert len(server_pids(state_folder)) == 1
        assert _url(state_folder) == url
    assert [one.wait(180) for one in started] == [0] * 5

    runs = list_runs(runyard)
    assert len(runs) == 5
    for run in runs:
        assert (run["state"], run["exit_code"]) == ("finished", 0)
        kept = curves(state_folder, run["id"])["value"]
        assert kept["steps"] == list(range(steps))
        assert kept["values"] == [step * step for step in range(steps)]


def _url(home: Home) -> str:
    discovery = read_discovery(home)
    assert discovery is not None
    return discovery.url


def _wait_for_steps(runyard: RunRunyard, count: int) -> None:
    """Until so many runs have sent steps."""
    end = time.monotonic() + 180
    while time.monotonic() < end:
        if sum(run["steps"] > 0 for run in list_runs(runyard)) >= count:
            return
        time.sleep(0.3)
    raise AssertionError("the runs never got going")
