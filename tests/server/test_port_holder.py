"""The server's port stays ours while the server is away."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path

import pytest

from runyard.client.discover import ensure_server, restart_server, start_server, stop_server
from runyard.client.http import Connection
from runyard.home import Discovery, Home, read_discovery
from runyard.port_holder import (
    _RESTART_SECONDS,
    HOLD_SECONDS,
    _meeting_place,
    _Restart,
    end_holder,
    find_holder,
)
from tests.conftest import holder_pids, server_pids, wait_until
from tests.server.asgi import basic
from tests.strangers import Stranger

pytestmark = pytest.mark.live


def served(home: Home) -> Discovery:
    discovery = read_discovery(home)
    assert discovery is not None
    return discovery


def kill_server(home: Home) -> None:
    (pid,) = server_pids(home)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not server_pids(home))


def ask(port: int, body: bytes = b"") -> bytes:
    """What a client without a key is answered."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        head = f"POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        client.sendall(head.encode() + body)
        client.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: client.recv(1 << 16), b""))


def can_be_bound(port: int) -> bool:
    with socket.socket() as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            stranger.bind(("127.0.0.1", port))
            stranger.listen()
        except OSError:
            return False
        return True


def test_a_killed_servers_port_is_nobody_elses_and_the_next_server_gets_it(
    state_folder: Home,
) -> None:
    ensure_server(state_folder)
    port = served(state_folder).port
    wait_until(lambda: len(holder_pids(state_folder)) == 1)
    (holder,) = holder_pids(state_folder)
    for _ in range(2):
        kill_server(state_folder)
        answer = ask(port, b"x" * 300_000)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"Retry-After: 1" in answer
        assert not can_be_bound(port)
        # One that never asks keeps nobody from an answer.
        with socket.create_connection(("127.0.0.1", port)):
            assert ask(port).startswith(b"HTTP/1.1 503 ")
        assert ensure_server(state_folder).note is None
        assert served(state_folder).port == port
        assert ask(port).startswith(b"HTTP/1.1 401 ")
        assert holder_pids(state_folder) == [holder]
    stop_server(state_folder)
    wait_until(lambda: not holder_pids(state_folder))
    assert can_be_bound(port)


def test_a_killed_server_is_started_again_when_clients_ask_and_only_then(
    state_folder: Home,
) -> None:
    ensure_server(state_folder)
    port = served(state_folder).port
    wait_until(lambda: holder_pids(state_folder))
    kill_server(state_folder)
    (holder,) = holder_pids(state_folder)
    time.sleep(_RESTART_SECONDS + 3)
    assert not server_pids(state_folder)  # Nobody needs it.
    assert ask(port).startswith(b"HTTP/1.1 503 ")
    wait_until(lambda: server_pids(state_folder))
    wait_until(lambda: ask(port).startswith(b"HTTP/1.1 401 "))
    assert holder_pids(state_folder) == [holder]
    assert served(state_folder).port == port
    # A command finds that server and starts none.
    assert not ensure_server(state_folder).started
    assert len(server_pids(state_folder)) == 1


def test_a_server_that_is_killed_again_and_again_is_started_more_and_more_slowly(
    state_folder: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    started: list[float] = []

    class Command:
        def __init__(self, *_words: object, **_options: object) -> None:
            started.append(now[0])

        def poll(self) -> int:
            return 0

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(subprocess, "Popen", Command)
    restart = _Restart(state_folder)
    state_folder.path.mkdir(exist_ok=True)
    for _ in range(3):
        restart.on_killed()
        killed = now[0]
        while not started or started[-1] <= killed:
            restart.is_wanted = True
            now[0] += 1
            restart.look()
        restart.on_server()
    assert [round(second - first) for first, second in itertools.pairwise(started)] == [10, 20]
    now[0] += 3600  # It lived for an hour.
    restart.on_killed()
    restart.is_wanted = True
    now[0] += _RESTART_SECONDS
    restart.look()
    assert started[-1] == now[0]


def test_an_orderly_end_leaves_nothing(state_folder: Home) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        ensure_server(state_folder)
        wait_until(lambda: holder_pids(state_folder))
        (pid,) = server_pids(state_folder)
        os.kill(pid, number)
        wait_until(lambda: not server_pids(state_folder))
        wait_until(lambda: not holder_pids(state_folder))
    # `stop` also ends what is left of a server that was killed.
    ensure_server(state_folder)
    wait_until(lambda: holder_pids(state_folder))
    kill_server(state_folder)
    assert not stop_server(state_folder)
    wait_until(lambda: not holder_pids(state_folder))
    assert can_be_bound(served(state_folder).port)


def test_a_server_whose_port_was_taken_retires_what_was_sent_there_and_says_so(
    state_folder: Home,
) -> None:
    api = ensure_server(state_folder).api
    before = served(state_folder)
    run = api.create_run({"id": "a", "name": "a", "project": "p", "command": ["x"], "entity": None})
    connection = Connection(before.url, before.key)
    kinds: dict[str, dict[str, object]] = {
        "a shell": {"kind": "shell"},
        "a sync": {"kind": "run"},
        "behind a door": {"kind": "run", "run": run["key"]},
        "laptop": {},
        "laptop's programs": {},
    }
    keys = {
        name: connection.post("/api/keys", {"label": name, **kind})["key"]
        for name, kind in kinds.items()
    }
    connection.close()
    assert status(state_folder, keys["laptop"]) == 200
    assert status(state_folder, keys["laptop's programs"], "/graphql") != 401
    restart_server(state_folder)  # Which writes down what was used.
    wait_until(lambda: holder_pids(state_folder))
    kill_server(state_folder)
    end_holder(state_folder, before.key)
    with Stranger(before.port):
        found = start_server(state_folder)
        assert found.note is not None
        assert f"another program took port {before.port}" in found.note
        assert "retired (3)" in found.note
        assert found.note in state_folder.log.read_text()
        assert ensure_server(state_folder).api.health()["note"] == found.note
        answers = {name: status(state_folder, key) for name, key in keys.items()}
        assert answers == {
            "a shell": 401,
            "a sync": 401,
            "behind a door": 200,
            "laptop": 200,
            "laptop's programs": 401,
        }
    # What is handed out now is for the new port, and stays.
    connection = Connection(served(state_folder).url, before.key)
    key = connection.post("/api/keys", {"label": "new", "kind": "shell"})["key"]
    connection.close()
    assert restart_server(state_folder).note is None
    assert status(state_folder, key) == 200
    # Whoever moves it on purpose leaves a port to others as well.
    note = restart_server(state_folder, port=0).note
    assert note is not None
    assert "the server moved from port" in note
    assert status(state_folder, key) == 401


def status(home: Home, key: str, path: str = "/api/runs") -> int:
    """How the server answers to whoever sends a key, as a stock client does."""
    with contextlib.closing(HTTPConnection("127.0.0.1", served(home).port, timeout=60)) as asking:
        asking.request("GET", path, headers={"Authorization": basic(key)})
        return asking.getresponse().status


def test_a_restart_never_lets_go_of_the_port(state_folder: Home) -> None:
    ensure_server(state_folder)
    port = served(state_folder).port
    wait_until(lambda: holder_pids(state_folder))
    before = holder_pids(state_folder)
    restart_server(state_folder)
    assert (served(state_folder).port, holder_pids(state_folder)) == (port, before)
    # At another address: whoever holds that is a new one.
    restart_server(state_folder, listen="0.0.0.0")
    assert served(state_folder).port == port
    wait_until(lambda: holder_pids(state_folder) not in ([], before))
    kill_server(state_folder)
    assert ask(port).startswith(b"HTTP/1.1 503 ")
    # Somewhere else: then the old port is given up.
    start_server(state_folder, port=0)
    assert served(state_folder).port != port
    assert can_be_bound(port)


def test_it_does_not_outlive_the_state_folder(state_folder: Home) -> None:
    ensure_server(state_folder)
    wait_until(lambda: holder_pids(state_folder))
    kill_server(state_folder)
    shutil.rmtree(state_folder.path)
    wait_until(lambda: not holder_pids(state_folder))


def test_it_lets_go_some_time_after_the_last_server(
    state_folder: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HOLD_SECONDS, "0.5")
    ensure_server(state_folder)
    wait_until(lambda: holder_pids(state_folder))
    kill_server(state_folder)
    wait_until(lambda: not holder_pids(state_folder))
    ensure_server(state_folder)


def test_a_copy_of_the_state_folder_has_another_one(state_folder: Home, tmp_path: Path) -> None:
    ensure_server(state_folder)
    wait_until(lambda: holder_pids(state_folder))
    copy = Home(tmp_path / "copy")
    ensure_server(state_folder).api.backup(str(copy.path), lambda *_: None)
    assert find_holder(copy, served(state_folder).key) is None


def test_who_has_the_name_of_the_last_holder_does_not_get_the_port(state_folder: Home) -> None:
    """All users of the machine can see that name, and bind it once its process has ended."""
    ensure_server(state_folder)
    wait_until(lambda: holder_pids(state_folder))
    port, name = served(state_folder).port, _meeting_place(state_folder, served(state_folder).key)
    assert f"@{name[1:]}" in Path("/proc/net/unix").read_text()
    stop_server(state_folder)
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as squatter:
        wait_until(lambda: not holder_pids(state_folder))
        squatter.bind(name)
        ensure_server(state_folder)
        assert served(state_folder).port == port
        wait_until(lambda: holder_pids(state_folder))
        kill_server(state_folder)
        assert ask(port).startswith(b"HTTP/1.1 503 ")
        assert not can_be_bound(port)


def test_the_log_says_that_nobody_keeps_the_port(state_folder: Home) -> None:
    ensure_server(state_folder)
    stop_server(state_folder)
    name = state_folder.path / "port-holder"
    name.unlink(missing_ok=True)
    name.mkdir()
    ensure_server(state_folder)
    port = served(state_folder).port
    warning = f"no process keeps port {port} if this server is killed: "
    wait_until(lambda: warning in state_folder.log.read_text())
    assert not holder_pids(state_folder)


def test_a_holder_that_was_replaced_starts_no_server(state_folder: Home) -> None:
    ensure_server(state_folder)
    port = served(state_folder).port
    wait_until(lambda: holder_pids(state_folder))
    (holder,) = holder_pids(state_folder)
    (state_folder.path / "port-holder").write_text("of another one")
    kill_server(state_folder)
    try:
        assert ask(port).startswith(b"HTTP/1.1 503 ")
        time.sleep(_RESTART_SECONDS + 3)
        assert ask(port).startswith(b"HTTP/1.1 503 ")
        assert not server_pids(state_folder)
    finally:
        os.kill(holder, signal.SIGKILL)


STRANGER = """
import os, socket, sys
os.setgid(65534), os.setuid(65534)
line = socket.socket(socket.AF_UNIX)
line.connect("\\0" + sys.argv[1])
try:
    line.sendall(b"t")
    said, handles, _, _ = socket.recv_fds(line, 1, 16)
    print(said, len(handles))
except (ConnectionResetError, BrokenPipeError):
    print("b'' 0")
line = socket.socket(socket.AF_UNIX)
line.bind("\\0" + sys.argv[2])
line.listen()
print("squats", flush=True)
peer, _ = line.accept()
print(peer.recv(10))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_user_neither_gets_the_port_nor_hands_one_out(
    state_folder: Home, tmp_path: Path
) -> None:
    ensure_server(state_folder)
    wait_until(lambda: holder_pids(state_folder))
    key = served(state_folder).key
    other = Home(tmp_path / "other")
    names = [_meeting_place(home, key).removeprefix("\0") for home in (state_folder, other)]
    with subprocess.Popen(
        [sys.executable, "-c", STRANGER, *names], stdout=subprocess.PIPE, text=True
    ) as stranger:
        assert stranger.stdout is not None
        assert stranger.stdout.readline() == "b'' 0\n"
        assert stranger.stdout.readline() == "squats\n"
        met: list[str] = []
        assert find_holder(other, key, met.append) is None
        assert met == ["a process of another user has the name of our port holder"]
        assert stranger.stdout.readline() == "b''\n"
    with contextlib.closing(socket.socket()) as probe:
        assert probe.connect_ex(("127.0.0.1", served(state_folder).port)) == 0
