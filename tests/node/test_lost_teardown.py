"""Which services of the wandb client wait for a message that will never come."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard.node.attempt import lost_teardown
from runyard.node.attempt.client_finish import listens_alone
from runyard.node.attempt.lost_teardown import LostTeardowns
from runyard.node.system import processes
from tests.node.terminals import until

US = os.getpid()


# Listens, and keeps whoever connects until they go.
LISTENER = """\
import socket, sys
if sys.argv[1] == "unix":
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[2])
    listener.listen()
else:
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], end="")
print(flush=True)
while True:
    with listener.accept()[0] as accepted:
        accepted.recv(1)
"""


@pytest.fixture
def strange_name() -> Iterator[None]:
    """A socket of somebody else on this machine: the kernel shows its name as it is."""
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.bind(b"\0strange-\xff\n")
        yield


@pytest.mark.usefixtures("strange_name")
@pytest.mark.parametrize("kind", ["unix", "tcp"])
def test_who_is_connected_is_told_by_the_kernel(tmp_path: Path, kind: str) -> None:
    path = str(tmp_path / "a socket")
    words = [sys.executable, "-c", LISTENER, kind, path]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as service:
        try:
            assert service.stdout is not None
            port = service.stdout.readline().strip()
            assert listens_alone(service.pid)
            with socket.socket(socket.AF_UNIX if kind == "unix" else socket.AF_INET) as client:
                client.connect(path if kind == "unix" else ("127.0.0.1", int(port)))
                until(lambda: not listens_alone(service.pid), "the connection to be seen", 20)
            until(lambda: listens_alone(service.pid), "its end to be seen", 20)
        finally:
            service.kill()
    assert not listens_alone(service.pid)


class Service:
    """What the looks see of one service, and what it was told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_waiting, self.ticks = True, 0
        monkeypatch.setattr(processes, "is_client", lambda _pid: True)
        monkeypatch.setattr(lost_teardown, "_is_waiting", lambda _pid: self.is_waiting)
        monkeypatch.setattr(lost_teardown, "cpu_ticks", lambda _pid: self.ticks)
        monkeypatch.setattr(lost_teardown, "tell_teardown", lambda _pid, _code: True)
        self.lost = LostTeardowns()

    def look(self) -> bool:
        return bool(self.lost.look([US]))


def test_three_looks_in_a_row_and_then_again_three(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(monkeypatch)
    assert [service.look() for _ in range(7)] == [False, False, True, False, False, True, False]


def test_a_look_at_a_connected_service_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(monkeypatch)
    assert not service.look()
    assert not service.look()
    service.is_waiting = False
    assert not service.look()
    service.is_waiting = True
    assert [service.look() for _ in range(3)] == [False, False, True]


def test_a_service_for_many_programs_is_left_alone(tmp_path: Path) -> None:
    """`wandb beta core start --detached`: between two programs nobody is connected."""
    run = tmp_path / "run-1.wandb"
    code = f"import time; held = open({str(run)!r}, 'w'); print(flush=True); time.sleep(60)"
    for words, is_left in ((["--detached"], True), ([], False)):
        command = [sys.executable, "-c", code, *words]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as service:
            try:
                assert service.stdout is not None
                service.stdout.readline()
                assert lost_teardown._has_open_run(service.pid)
                assert lost_teardown._is_for_many_programs(service.pid) == is_left
            finally:
                service.kill()


def test_a_program_that_works_keeps_its_service(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(monkeypatch)
    for _ in range(10):
        service.ticks += 1000
        assert not service.look()
