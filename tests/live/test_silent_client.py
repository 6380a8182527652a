"""A client that is not heard any more, and then is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runyard.client.discover import ensure_server, find_server
from runyard.home import Home
from runyard.shapes.runs import Run
from tests.live.programs import PYTHON, curves, stock_client, write_program

pytestmark = pytest.mark.live

_PROGRAM = """
import pathlib, sys, time, wandb
run, end, step = wandb.init(project="silence", id="sleeper"), pathlib.Path(sys.argv[1]), 0
while not end.exists():
    run.log({"value": step})
    step += 1
    time.sleep(0.1)
run.finish()
print(step)
"""


@pytest.fixture
def impatient(state_folder: Home) -> Iterator[Home]:
    """A state folder whose server takes a run for dead after seconds."""
    server = subprocess.Popen(
        [PYTHON, "-m", "tests.live.impatient_server", "--home", state_folder.path],
        cwd=Path(__file__).parents[2],
    )
    _wait_until(lambda: find_server(state_folder) is not None)
    try:
        yield state_folder
    finally:
        server.terminate()
        server.wait()


@pytest.mark.skipif(sys.platform != "linux", reason="finds the client's processes in /proc")
def test_a_frozen_client_counts_as_crashed_and_is_back_when_it_speaks(
    impatient: Home, tmp_path: Path
) -> None:
    end = tmp_path / "end"
    client = subprocess.Popen(
        [PYTHON, write_program(tmp_path / "project", _PROGRAM), end],
        cwd=tmp_path / "project",
        env={**os.environ, **stock_client(impatient)},
        stdout=subprocess.PIPE,
        text=True,
    )
    frozen: list[int] = []
    try:
        _wait_until(lambda: _run(impatient)["steps"] > 0 and _run(impatient)["state"] == "running")
        frozen = _family(client.pid)
        assert len(frozen) > 1  # The program and the client's own service.
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        _wait_until(lambda: _run(impatient)["state"] == "crashed")
        silent = _run(impatient)
        assert silent["exit_code"] is None
        assert silent["ended_at"] is not None
        for pid in frozen:
            os.kill(pid, signal.SIGCONT)
        _wait_until(lambda: _run(impatient)["state"] == "running")
        _wait_until(lambda: _run(impatient)["steps"] > silent["steps"])
        assert _run(impatient)["ended_at"] is None
    finally:
        for pid in frozen:
            os.kill(pid, signal.SIGCONT)
        end.touch()
        said, _ = client.communicate(timeout=120)
    assert client.returncode == 0
    assert (_run(impatient)["state"], _run(impatient)["exit_code"]) == ("finished", 0)
    assert curves(impatient, "sleeper")["value"]["values"] == list(range(int(said)))


def _run(home: Home) -> Run:
    found = ensure_server(home).api.runs(project="silence")
    return found[0] if found else {"steps": 0, "state": "pending"}  # type: ignore[typeddict-item]


def _family(pid: int) -> list[int]:
    """A process and all that it started, and those started."""
    parents = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(place.parent.name)] = int(place.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # It has just ended.
    family = [pid]
    for one in family:
        family += [child for child, parent in parents.items() if parent == one]
    return family


def _wait_until(holds: Callable[[], bool]) -> None:
    limit = time.monotonic() + 180
    while not holds():
        assert time.monotonic() < limit
        time.sleep(0.2)
