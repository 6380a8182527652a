"""No key goes out to whoever has not proved that it is our server."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from runyard.client.api import Api
from runyard.client.discover import ensure_server, find_server, restart_server
from runyard.client.http import Connection, Impostor, Unreachable
from runyard.errors import ServerError
from runyard.home import Discovery, Home, read_discovery, write_discovery
from runyard.node.link.channel import Answer, Channel
from runyard.node.link.place import Place
from runyard.node.system.loop import Loop
from tests.conftest import wait_until
from tests.node.doors import open_door
from tests.strangers import Stranger

NONSENSE = (
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 404 None\r\nContent-Length: 0\r\n\r\n",
    b"220 mail.example ESMTP\r\n\r\n",
    b"x" * 10_000 + b"\r\n\r\n",
)


@pytest.fixture(scope="module")
def found(module_home: Home) -> Discovery:
    """A server that lives."""
    ensure_server(module_home)
    discovery = read_discovery(module_home)
    assert discovery is not None
    return discovery


@pytest.fixture
def elsewhere(found: Discovery, tmp_path: Path) -> Home:
    """A state folder of another machine's server, whose address `at` writes."""
    home = Home(tmp_path / "other")
    (home.path / "spool").mkdir(parents=True)
    return home


def at(home: Home, found: Discovery, stranger: Stranger) -> None:
    write_discovery(
        home, replace(found, url=stranger.url, hostname="far", listen="0.0.0.0", port=stranger.port)
    )


def test_the_server_proves_itself_once_a_connection(found: Discovery) -> None:
    with Stranger(server=found.port) as between:  # Who only listens, to see what is said.
        connection = Connection(between.url, found.key, name=found.url)
        for _ in range(3):
            connection.get("/api/health")
        connection.close()
        connection.get("/api/health")
        assert between.heard.count(b"GET /api/proof") == between.connections == 2
        assert between.heard.index(b"/api/proof") < between.heard.index(b"Authorization")


@pytest.mark.parametrize("answer", NONSENSE)
def test_a_stranger_gets_no_key_from_a_command(found: Discovery, answer: bytes) -> None:
    with Stranger(answer=answer) as stranger:
        with (
            closing(Connection(stranger.url, found.key, timeout=5)) as connection,
            pytest.raises(ServerError) as refused,
        ):
            connection.get("/api/health")
        assert stranger.url in refused.value.what
        assert b"/api/proof" in stranger.heard
        assert found.key.encode() not in stranger.heard
        assert b"uthorization" not in stranger.heard


def test_a_stranger_who_passes_the_question_on_is_told_apart(
    found: Discovery, elsewhere: Home
) -> None:
    with Stranger(server=found.port) as stranger:
        with (
            closing(Connection(stranger.url, found.key)) as connection,
            pytest.raises(Impostor, match="not runyard's server") as refused,
        ):
            connection.post("/api/runs", {})
        assert refused.value.mend is not None
        at(elsewhere, found, stranger)
        assert find_server(elsewhere) is None
        assert stranger.heard.count(b"GET /api/proof") == 2
        assert stranger.keys == set()


def test_a_command_goes_on_when_its_server_begins_to_listen_to_nodes(state_folder: Home) -> None:
    api = ensure_server(state_folder).api
    assert api.health()
    listening = restart_server(state_folder, listen="0.0.0.0").api
    assert listening.url != api.url
    assert api.health()["home"] == str(state_folder.path)


def test_a_key_that_was_revoked_is_not_sent(module_home: Home, found: Discovery) -> None:
    with Stranger(server=found.port) as between:
        with (
            closing(Connection(between.url, "0" * 40, name=found.url)) as connection,
            pytest.raises(ServerError, match="refused the key"),
        ):
            connection.get("/api/health")
        assert between.keys == set()


@pytest.mark.parametrize("answer", [None, *NONSENSE])
def test_an_agent_sends_a_stranger_nothing_and_finds_the_server_that_comes_back(
    found: Discovery, elsewhere: Home, answer: bytes | None
) -> None:
    """The stranger answers nonsense, or passes all of it on to the server at its new address."""
    loop, answers = Loop(), list[Answer]()
    relayed = {"server": found.port} if answer is None else {}
    with Stranger(answer=answer or b"", **relayed) as stranger:
        at(elsewhere, found, stranger)
        channel = Channel(loop, Place(str(elsewhere.path), lambda _words: None))
        channel.post("/api/console", {"secret": "what is said"}, answers.append)
        while stranger.connections < 3:
            loop.turn(1.0)
        assert stranger.keys == set()
        assert b"what is said" not in stranger.heard
        write_discovery(elsewhere, replace(found, hostname="far", listen="0.0.0.0"))
        while not answers:
            loop.turn(1.0)
    assert answers[0].status == 405  # There is no such route, and our server says so.
    channel.drop()


@pytest.mark.parametrize("answer", [None, *NONSENSE])
def test_what_comes_through_a_door_waits_until_the_server_has_proved_itself(
    found: Discovery, elsewhere: Home, answer: bytes | None
) -> None:
    relayed = {"server": found.port} if answer is None else {}
    with Stranger(answer=answer or b"", **relayed) as stranger:
        at(elsewhere, found, stranger)
        with open_door(elsewhere) as door:
            # As a stock client would: its first bytes carry the key.
            with socket.create_connection(("127.0.0.1", door.port)) as client:
                client.sendall(b"GET /api/health HTTP/1.1\r\nHost: x\r\n"
                               b"Authorization: Basic YXBpOnNlY3JldA==\r\n\r\n")  # fmt: skip
                wait_until(lambda: stranger.connections >= 2)
                assert stranger.keys == set()
                assert b"/api/health" not in stranger.heard
                write_discovery(elsewhere, replace(found, hostname="far", listen="0.0.0.0"))
                client.settimeout(60)
                assert client.recv(20).startswith(b"HTTP/1.1 401")
            with closing(Connection(door.url, found.key, name=found.url)) as connection:
                assert connection.get("/api/health")["pid"] == found.pid


def test_a_stranger_at_a_killed_relays_port_gets_no_key(
    found: Discovery, elsewhere: Home, tmp_path: Path
) -> None:
    """He passes everything on to the live server, which proves itself; the relay does not."""
    where = tmp_path / "relay"
    relay = subprocess.Popen([sys.executable, "-m", "runyard.node.link.relay", str(where)])
    wait_until(where.exists)
    loop, answers = Loop(), list[Answer]()
    try:
        place = Place(found_home(found), lambda _words: None, str(where))
        channel = Channel(loop, place)
        channel.post("/api/console", {}, answers.append)
        while not answers:
            loop.turn(1.0)
        assert answers[0].status == 405
        channel.drop()
    finally:
        relay.kill()
        relay.wait()
    with Stranger(server=found.port) as stranger:
        where.write_text(f"127.0.0.1 {stranger.port}\n")
        channel = Channel(loop, place)
        channel.post("/api/console", {}, answers.append)
        while stranger.connections < 3:
            loop.turn(1.0)
        channel.drop()
        assert len(answers) == 1
        assert stranger.keys == set()


def found_home(found: Discovery) -> str:
    with closing(Api(Connection(found.url, found.key))) as api:
        return str(api.health()["home"])


def test_whoever_is_not_reached_may_be_asked_again() -> None:
    """So that `runyard run` records on disk instead of failing."""
    assert issubclass(Impostor, Unreachable)
