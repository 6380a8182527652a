"""A server under a thousand connections that say nothing, or too little, or too much."""

from __future__ import annotations

import base64
import contextlib
import http.client
import resource
import socket
import time
import urllib.parse
from collections.abc import Iterator

import pytest

from runyard.client.discover import ensure_server, start_server
from runyard.client.http import Connection
from runyard.home import Home, read_discovery
from tests.conftest import run_runyard
from tests.node.terminals import until

pytestmark = pytest.mark.live

SLOW = b"POST /api/login HTTP/1.1\r\nhost: a\r\nx-runyard: page\r\ncontent-length: 1000\r\n\r\n{"


@pytest.fixture
def address(state_folder: Home) -> tuple[str, int]:
    parts = urllib.parse.urlsplit(ensure_server(state_folder).api.url)
    assert parts.hostname is not None
    assert parts.port is not None
    return parts.hostname, parts.port


@contextlib.contextmanager
def connected(address: tuple[str, int], count: int, first: bytes) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as closing:
        connections = []
        for _ in range(count):
            made = closing.enter_context(socket.create_connection(address))
            made.sendall(first)
            connections.append(made)
        yield connections


@pytest.fixture
def many_files() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(before[1], 8_192), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.usefixtures("many_files")
def test_a_thousand_idle_and_a_thousand_slow_connections_keep_nobody_out(
    address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        connected(address, 1_000, b"") as idle,
        connected(address, 500, b"GET / HTTP/1.1\r\nx: ") as heads,
        connected(address, 500, SLOW) as bodies,
    ):
        assert run_runyard("run", "-q", "-e", "through", "true").returncode == 0
        assert "through" in run_runyard("runs").stdout
        # Closed by the server, to make room: the first of those who came.
        idle[0].settimeout(0.0)
        with contextlib.suppress(ConnectionResetError):
            assert idle[0].recv(1) == b""
        for made in (heads[-1], bodies[-1]):
            made.settimeout(0.0)
            with pytest.raises(BlockingIOError):
                made.recv(1)


@pytest.mark.usefixtures("many_files")
def test_two_thousand_connections_with_a_key_are_all_kept(
    address: tuple[str, int], state_folder: Home
) -> None:
    discovery = read_discovery(state_folder)
    assert discovery is not None
    word = base64.b64encode(f"api:{discovery.key}".encode())
    asked = b"GET /api/health HTTP/1.1\r\nhost: a\r\nauthorization: Basic %b\r\n\r\n" % word
    with contextlib.ExitStack() as closing:
        connections = []
        for _ in range(2_100):
            connections.append(closing.enter_context(socket.create_connection(address, 60)))
            connections[-1].sendall(asked)
            assert connections[-1].recv(4096).startswith(b"HTTP/1.1 200")
        for made in connections:
            made.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                assert made.recv(1) != b""  # That would be its end.


FORWARDED = b"x-forwarded-for: 10.2.3.4\r\nx-forwarded-proto: https\r\n"


@pytest.mark.usefixtures("many_files")
@pytest.mark.parametrize("way", ["ordinary", "direct"])
def test_strangers_do_not_cut_off_who_has_shown_a_key_through_a_proxy(
    state_folder: Home, way: str
) -> None:
    api = start_server(state_folder, options=["--proxy", "127.0.0.1"]).api
    discovery = read_discovery(state_folder)
    assert discovery is not None
    run = api.create_run({"id": "one", "project": "birds", "command": ["x"]})
    word = base64.b64encode(f"api:{discovery.key}".encode())
    shown = b"host: a\r\nauthorization: Basic %b\r\n" % word + FORWARDED
    rows = b'{"files": {"wandb-history.jsonl": {"offset": 0, "content": ["{\\"loss\\": 1}"]}}}'
    stream = f"/files/{run['entity']}/birds/one/file_stream".encode()
    asked = {
        "ordinary": b"GET /api/health HTTP/1.1\r\n%b\r\n" % shown,
        "direct": b"POST %b HTTP/1.1\r\n%bcontent-length: %d\r\n\r\n%b"
        % (stream, shown, len(rows), rows),
    }[way]
    address = "127.0.0.1", discovery.port
    with socket.create_connection(address, 60) as proxied:
        for _ in range(2):
            proxied.sendall(asked)
            answer = http.client.HTTPResponse(proxied)
            answer.begin()
            assert (answer.status, answer.read() != b"") == (200, True)
            with (
                connected(address, 1_200, b""),
                contextlib.closing(Connection(discovery.url, discovery.key)) as last,
            ):
                last.get("/api/me")  # It is accepted after all the others.
                proxied.setblocking(False)
                with pytest.raises(BlockingIOError):
                    proxied.recv(1)
                proxied.settimeout(60)


CHUNKED = b"POST /api/login HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\n"


@pytest.mark.parametrize("first", [b"GET / HTTP/1.1\r\n", CHUNKED], ids=["head", "behind a body"])
def test_headers_without_end_are_cut_off(address: tuple[str, int], first: bytes) -> None:
    with socket.create_connection(address) as made:
        made.sendall(first)

        def is_closed() -> bool:
            try:
                made.sendall(b"x-more: " + b"a" * 8_000 + b"\r\n")
            except OSError:
                return True
            return False

        until(is_closed, "the server to close it")


def test_a_connection_that_says_nothing_is_closed(address: tuple[str, int]) -> None:
    with socket.create_connection(address) as silent, socket.create_connection(address) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\n")
        for made in (silent, slow):
            made.settimeout(180.0)
            assert made.recv(1) == b""


def test_a_long_body_leaves_the_next_head_its_room(
    address: tuple[str, int], state_folder: Home
) -> None:
    discovery = read_discovery(state_folder)
    assert discovery is not None
    word = base64.b64encode(f"api:{discovery.key}".encode())
    body = b"{" + b" " * 400_000 + b"}"
    head = b"POST /graphql HTTP/1.1\r\nhost: a\r\nauthorization: Basic %b\r\n" % word
    with socket.create_connection(address, 60) as made:
        for _ in range(2):
            made.sendall(head)
            time.sleep(0.2)  # In a segment of its own.
            made.sendall(b"content-length: %d\r\n\r\n" % len(body) + body)
            answer = http.client.HTTPResponse(made)
            answer.begin()
            assert answer.status < 500
            answer.read()
