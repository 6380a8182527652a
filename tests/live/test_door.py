"""Programs of an agent log through the door on their node, whatever is killed behind it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runyard.client.discover import restart_server, stop_server
from runyard.home import Home, read_discovery
from runyard.node.ranks.ports import Port
from tests.conftest import run_runyard
from tests.live.programs import curves
from tests.live.sweeping import api_of, write_sweep
from tests.node.terminals import until

pytestmark = pytest.mark.live

STEPS = 6
PACED = f"""\
import os, pathlib, time, wandb
run = wandb.init()
pathlib.Path("address").write_text(os.environ["WANDB_BASE_URL"] + " " + run.url)
for step in range({STEPS}):
    while not pathlib.Path(f"go-{{step}}").exists():
        time.sleep(0.02)
    run.log({{"value": step}})
    pathlib.Path(f"done-{{step}}").touch()
run.finish()
"""


# The same without the client: what it says does not matter where only its life does.
SILENT = """\
import os, pathlib, time
pathlib.Path("address").write_text(os.environ["WANDB_BASE_URL"] + " nowhere")
time.sleep(600)
"""


class Working:
    """An agent with a door, and its one program."""

    def __init__(self, home: Home, folder: Path, key: int) -> None:
        self.home, self.folder, self.key = home, folder, key
        job = folder / "job.json"
        job.write_text(json.dumps({"sweep": key, "folder": str(folder)}))
        self.agent = subprocess.Popen(
            [sys.executable, "-m", "runyard.node.agent", "--job", str(job)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        until(lambda: " " in _read(folder / "address"), "the program", 180)
        base, self.shown = (folder / "address").read_text().split()
        self.port = int(base.rpartition(":")[2])

    def log(self, step: int) -> None:
        (self.folder / f"go-{step}").touch()
        until(lambda: (self.folder / f"done-{step}").exists(), f"step {step}", 180)

    def door_pid(self) -> int:
        """The first of the agent's twins: it is opened before the keeper is made."""
        twins = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            told = re.match(r"(\d+) \(.*\) \S (\d+)", stat.read_text())
            if told is not None and int(told[2]) == self.agent.pid:
                twins.append(int(told[1]))
        return min(twins)


@pytest.fixture
def start(module_home: Home, tmp_path: Path) -> Iterator[Callable[[str], Working]]:
    begun: list[Working] = []

    def begin(program: str) -> Working:
        folder = tmp_path / "project"
        command = [sys.executable, "${program}"]
        file = write_sweep(folder, program, command=command, parameters={"x": {"values": [1]}})
        made = json.loads(run_runyard("sweep", "--no-run", "--json", str(file), cwd=folder).stdout)
        begun.append(Working(module_home, folder, made["key"]))
        return begun[-1]

    yield begin
    for one in begun:
        one.agent.kill()
        one.agent.wait()


def test_a_killed_door_is_opened_again_and_a_server_that_moved_is_found(
    start: Callable[[str], Working], module_home: Home
) -> None:
    working, state_folder = start(PACED), module_home
    before = read_discovery(state_folder)
    assert before is not None
    assert working.port != before.port
    assert working.shown.startswith(before.url)  # What people click on is the server itself.
    working.log(0)
    killed = working.door_pid()
    os.kill(killed, signal.SIGKILL)
    working.log(1)
    with Port() as free:
        restart_server(state_folder, port=free.number)
    working.log(2)
    stop_server(state_folder)
    working.log(3)  # Nobody serves: it waits at the door.
    restart_server(state_folder)
    for step in range(4, STEPS):
        working.log(step)
    assert working.agent.wait(timeout=180) == 0
    (trial,) = api_of(state_folder).sweeps.trials(working.key)
    assert trial["state"] == "finished"
    assert curves(state_folder, trial["id"])["value"]["values"] == list(range(STEPS))
    assert not _is_open(working.port)


def test_the_port_is_ours_until_the_last_program_of_a_killed_agent_is_gone(
    start: Callable[[str], Working],
) -> None:
    working = start(SILENT)
    assert _working_in(working.folder) != []
    os.kill(working.agent.pid, signal.SIGKILL)
    assert _is_open(working.port)
    until(lambda: not _is_open(working.port), "the keeper's work", 180)
    assert _working_in(working.folder) == []


def _read(file: Path) -> str:
    return file.read_text() if file.exists() else ""


def _working_in(folder: Path) -> list[Path]:
    """Processes whose folder it is."""
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            found += [link] if link.readlink() == folder else []
    return found


def _is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
