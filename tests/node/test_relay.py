"""A door on the node through which programs reach a server that moves."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from runyard.client.api import Api
from runyard.client.discover import ensure_server
from runyard.client.http import Connection
from runyard.home import Home, read_discovery, write_discovery
from tests.node.doors import OpenDoor, open_door
from tests.node.terminals import until
from tests.server.asgi import basic

pytestmark = pytest.mark.live


@pytest.fixture
def door(state_folder: Home) -> Iterator[OpenDoor]:
    with open_door(state_folder) as door:
        yield door


def test_megabytes_go_through_both_ways_for_who_has_the_key(
    state_folder: Home, door: OpenDoor
) -> None:
    ensure_server(state_folder)
    found = read_discovery(state_folder)
    assert found is not None
    assert _ask(door.port, None).startswith("HTTP/1.1 401")
    assert _ask(door.port, "0" * 40).startswith("HTTP/1.1 401")
    assert _ask(door.port, found.key).startswith("HTTP/1.1 200")
    api = Api(Connection(door.url, found.key, name=found.url))
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
    door.process.wait(timeout=180)
    until(lambda: not _is_alive(door.pid), "the end of the process behind the door")
    with contextlib.closing(socket.socket()) as probe, pytest.raises(ConnectionRefusedError):
        probe.connect(("127.0.0.1", door.port))


def test_killed_with_its_agent_it_leaves_nothing(door: OpenDoor) -> None:
    door.process.send_signal(signal.SIGKILL)
    until(lambda: not _is_alive(door.pid), "the end of the process behind the door")


def _ask(port: int, key: str | None) -> str:
    head = f"Authorization: {basic(key)}\r\n" if key is not None else ""
    with socket.create_connection(("127.0.0.1", port), timeout=90) as connection:
        connection.sendall(f"GET /api/health HTTP/1.1\r\nHost: x\r\n{head}\r\n".encode())
        return connection.recv(4096).decode()


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_nodes_without_a_way_of_their_own_come_through_the_jobs_first_one(
    state_folder: Home, tmp_path: Path
) -> None:
    """The agent is told of nothing but the relay: its state folder names another machine."""
    api = ensure_server(state_folder).api
    sweep = api.sweeps.create({"method": "grid", "program": "x.sh", "command": ["true"],
                               "parameters": {"x": {"values": [1, 2]}}})  # fmt: skip
    found = read_discovery(state_folder)
    assert found is not None
    where, lonely = tmp_path / "relay", tmp_path / "lonely"
    lonely.mkdir()
    (lonely / "spool").mkdir()
    nowhere = replace(found, hostname="far", listen="127.0.0.1")
    write_discovery(Home(lonely), nowhere)
    with subprocess.Popen([sys.executable, "-m", "runyard.node.link.relay", str(where)]) as relay:
        try:
            until(where.exists, "the relay")
            assert where.stat().st_mode & 0o077 == 0
            done = subprocess.run(
                [sys.executable, "-m", "runyard.node.agent", "--sweep", str(sweep["key"])],
                env={**os.environ, "RUNYARD_HOME": str(lonely), "RUNYARD_RELAY": str(where)},
                capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
        finally:
            relay.terminate()
            relay.wait(timeout=180)
    assert not where.exists()
    states = [trial["state"] for trial in api.sweeps.trials(sweep["key"])]
    assert states == ["finished", "finished"]
