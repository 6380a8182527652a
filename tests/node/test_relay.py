"""A door on the node through which programs reach a server that moves."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard.client.api import Api
from runyard.client.discover import ensure_server, restart_server, stop_server
from runyard.client.environment import wandb_environment
from runyard.client.http import Connection
from runyard.home import Home, read_discovery
from tests.live.programs import PYTHON, curves, write_program
from tests.node.terminals import until
from tests.server.asgi import basic

pytestmark = pytest.mark.live

DOOR = """
import os, sys
from runyard.node.relay import Door
door = Door(sys.argv[1])
door.open()
print(door.url, door.pid, flush=True)
sys.stdin.read()
"""

# Says after each row that it is logged, so that a test knows when to do its worst.
LOG_AND_TELL = """
import sys, wandb
run = wandb.init(project="moves", id="mover")
for step in range(30):
    run.log({"value": step})
    print(step, flush=True)
    sys.stdin.readline()
run.finish()
"""


class OpenDoor:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        self.url, pid = process.stdout.readline().split()
        self.pid = int(pid)
        self.port = int(self.url.rpartition(":")[2])


@pytest.fixture
def door(state_folder: Home) -> Iterator[OpenDoor]:
    process = subprocess.Popen(
        [sys.executable, "-c", DOOR, str(state_folder.path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with process:
        yield OpenDoor(process)
        process.kill()


def test_a_client_logs_through_it_while_the_server_moves(
    state_folder: Home, door: OpenDoor, tmp_path: Path
) -> None:
    ensure_server(state_folder)
    found = read_discovery(state_folder)
    assert found is not None
    program = write_program(tmp_path / "project", LOG_AND_TELL)
    environ = {**os.environ, **wandb_environment(door.url, found.key, os.environ)}
    with subprocess.Popen(
        [PYTHON, str(program)], env=environ, cwd=tmp_path, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip() == "10":
                restart_server(state_folder, port=_free_port())
            if line.strip() == "20":
                stop_server(state_folder)
            if line.strip() == "25":
                restart_server(state_folder, port=_free_port())
            if line.strip().isdecimal():
                process.stdin.write("\n")
                process.stdin.flush()
        assert process.wait(timeout=60) == 0
    moved = read_discovery(state_folder)
    assert moved is not None
    assert moved.port != found.port
    assert curves(state_folder, "mover")["value"]["values"] == list(range(30))


def test_who_has_no_key_gets_nothing_through_it(state_folder: Home, door: OpenDoor) -> None:
    ensure_server(state_folder)
    found = read_discovery(state_folder)
    assert found is not None
    assert _ask(door.port, None).startswith("HTTP/1.1 401")
    assert _ask(door.port, "0" * 40).startswith("HTTP/1.1 401")
    assert _ask(door.port, found.key).startswith("HTTP/1.1 200")


def test_megabytes_go_through_both_ways(state_folder: Home, door: OpenDoor) -> None:
    ensure_server(state_folder)
    found = read_discovery(state_folder)
    assert found is not None
    api = Api(Connection(door.url, found.key))
    run = api.create_run(
        {"id": "bulk", "name": "bulk", "project": "p", "command": ["x"], "entity": None}
    )
    number = api.begin_attempt(run, "here", os.getpid(), "token")
    piece = b"".join(b"%09d\n" % line for line in range(200_000))
    offset = 0
    for _ in range(4):
        offset = api.send_console(run, number, offset, piece)["stored"]
    told = api.console(run)
    assert offset == 4 * len(piece)
    assert len(told["text"]) >= 1 << 20  # The server's page.
    assert (piece * 4).startswith(told["text"].encode())


def test_it_goes_when_nobody_needs_it(door: OpenDoor) -> None:
    assert door.process.stdin is not None
    door.process.stdin.close()
    door.process.wait(timeout=20)
    until(lambda: not _is_alive(door.pid), "the end of the process behind the door")
    with contextlib.closing(socket.socket()) as probe, pytest.raises(ConnectionRefusedError):
        probe.connect(("127.0.0.1", door.port))


def test_killed_with_its_agent_it_leaves_nothing(door: OpenDoor) -> None:
    door.process.send_signal(signal.SIGKILL)
    until(lambda: not _is_alive(door.pid), "the end of the process behind the door")


def _ask(port: int, key: str | None) -> str:
    head = f"Authorization: {basic(key)}\r\n" if key is not None else ""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(f"GET /api/health HTTP/1.1\r\nHost: x\r\n{head}\r\n".encode())
        return connection.recv(4096).decode()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
