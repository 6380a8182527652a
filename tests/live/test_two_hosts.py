"""Two machines whose file locks do not see each other: one of them serves a state folder."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from runyard.home import Home
from runyard.owners import HEARTBEAT, read_claim
from tests.conftest import isolate, server_pids, wait_until
from tests.live.hosts import Host, is_alive, two_hosts

pytestmark = pytest.mark.live
# A dead server's claim is taken over after ten of these; a starved machine beats late.
BEAT = "0.7"


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Host, Host, Path]]:
    with two_hosts(tmp_path_factory.mktemp("hosts")) as machines:
        yield machines


@pytest.fixture
def alpha(machines: tuple[Host, Host, Path]) -> Host:
    return machines[0]


@pytest.fixture
def beta(machines: tuple[Host, Host, Path]) -> Host:
    return machines[1]


@pytest.fixture
def home(
    machines: tuple[Host, Host, Path],
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Home]:
    """A state folder that both machines see at the same path, and this test aside."""
    isolate(tmp_path, monkeypatch)
    name = request.node.name
    seen = Home(machines[2] / name)
    monkeypatch.setenv("RUNYARD_HOME", str(seen.path))
    monkeypatch.setenv(HEARTBEAT, BEAT)
    behind = Home(machines[2].parent / "behind" / name)
    yield behind
    for pid in server_pids(seen):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not server_pids(seen))


@pytest.fixture
def servers(home: Home, machines: tuple[Host, Host, Path]) -> Callable[[], list[int]]:
    return lambda: server_pids(Home(machines[2] / home.path.name))


def owner(home: Home) -> str:
    claim = read_claim(home)
    assert claim is not None
    return claim.hostname


def test_two_that_start_at_once_are_one_server(
    alpha: Host, beta: Host, home: Home, servers: Callable[[], list[int]], tmp_path: Path
) -> None:
    starting = [host.start_runyard("server", "start", cwd=tmp_path) for host in (alpha, beta)]
    said = {host.name: process.communicate(timeout=180)[0]
            for host, process in zip((alpha, beta), starting, strict=True)}  # fmt: skip
    wait_until(lambda: len(servers()) < 2)  # Who leaves has said so before.
    assert len(servers()) == 1, said
    winner = owner(home)
    loser = beta if winner == "alpha" else alpha
    codes = {
        host.name: process.returncode for host, process in zip((alpha, beta), starting, strict=True)
    }
    assert codes == {winner: 0, loser.name: 1}, said
    assert f"runs on {winner} and does not answer {loser.name} at http" in said[loser.name]
    # The same from every command there, and nothing is started or ended by it.
    for words in (("runs",), ("server", "stop")):
        code, output = loser.runyard(*words, cwd=tmp_path)
        assert code == 1
        assert f"runs on {winner}" in output
    code, output = loser.runyard("server", "status", cwd=tmp_path)
    assert code == 3
    assert f"on {winner} holds the folder but does not answer" in output
    # An orderly end there lets the other machine serve at once.
    (pid,) = servers()
    other = alpha if winner == "alpha" else beta
    assert other.runyard("server", "stop", cwd=tmp_path)[0] == 0
    wait_until(lambda: not is_alive(pid))
    assert loser.runyard("server", "start", cwd=tmp_path)[0] == 0
    assert owner(home) == loser.name


def test_where_the_network_is_cut_nobody_takes_over_and_after_it_healed_all_meet(
    alpha: Host, beta: Host, home: Home, servers: Callable[[], list[int]], tmp_path: Path
) -> None:
    code, output = alpha.runyard("server", "start", "--listen", alpha.address, cwd=tmp_path)
    assert code == 0, output
    pids = servers()
    code, output = beta.runyard("server", "start", cwd=tmp_path)
    assert code == 0, output
    assert f"already running at http://{alpha.address}" in output
    beta.set_network("down")
    try:
        code, output = beta.runyard("runs", cwd=tmp_path)
        assert code == 1
        assert f"runs on alpha and does not answer beta at http://{alpha.address}" in output
    finally:
        beta.set_network("up")
    wait_until(lambda: len(servers()) < 2)  # As above: beta's has said that it leaves.
    assert servers() == pids
    code, output = beta.runyard("run", "--name", "healed", "--", "true", cwd=tmp_path)
    assert code == 0, output
    assert "healed" in alpha.runyard("runs", cwd=tmp_path)[1]
    assert servers() == pids
    # A server that can be reached is also ended from there.
    assert beta.runyard("server", "stop", cwd=tmp_path)[0] == 0
    wait_until(lambda: servers() == [])


def test_a_server_that_was_taken_for_dead_ends_and_writes_nothing(
    alpha: Host, beta: Host, home: Home, servers: Callable[[], list[int]], tmp_path: Path
) -> None:
    assert alpha.runyard("run", "--name", "first", "--", "true", cwd=tmp_path)[0] == 0
    (paused,) = servers()
    os.kill(paused, signal.SIGSTOP)
    code, output = beta.runyard("run", "--name", "second", "--", "true", cwd=tmp_path)
    assert code == 0, output
    assert owner(home) == "beta"
    os.kill(paused, signal.SIGCONT)
    wait_until(lambda: not is_alive(paused))
    (pid,) = servers()
    # And one that was killed is followed in the same way.
    os.kill(pid, signal.SIGKILL)
    code, output = alpha.runyard("runs", cwd=tmp_path)
    assert code == 0, output
    assert "first" in output
    assert "second" in output
    assert owner(home) == "alpha"
    assert alpha.runyard("server", "stop", cwd=tmp_path)[0] == 0
    with closing(sqlite3.connect(home.database)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
