"""The server as a process: where it listens, whom it tells, how it ends, what it leaves."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from runyard.home import Discovery, Home, prepare, read_discovery
from runyard.server.__main__ import _Starter
from tests.server.asgi import basic
from tests.server.persons import UPSERT

pytestmark = pytest.mark.live


@dataclass
class Served:
    process: subprocess.Popen[bytes]
    report: dict[str, Any]

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=180)


Serve = Callable[..., Served]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "state")


@pytest.fixture
def serve(home: Home, tmp_path: Path) -> Iterator[Serve]:
    """Starts the server by hand, and says what it told its starter."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*more: str) -> Served:
        reader, writer = os.pipe()
        command = [sys.executable, "-m", "runyard.server", "--home", str(home.path), *more]
        process = subprocess.Popen(
            [*command, "--ready-fd", str(writer)],
            pass_fds=[writer],
            cwd=tmp_path,
            stderr=subprocess.DEVNULL,
        )
        started.append(process)
        os.close(writer)
        with os.fdopen(reader) as ready:
            told = ready.readline()
        return Served(process, json.loads(told) if told else {})

    yield start
    for process in started:
        process.kill()
        process.wait()


def _discovery(home: Home) -> Discovery:
    found = read_discovery(home)
    assert found is not None
    return found


def _ask(home: Home, method: str, path: str, content: object = None) -> tuple[int, Any]:
    found = _discovery(home)
    connection = HTTPConnection("127.0.0.1", found.port, timeout=30)
    body = content if isinstance(content, bytes | None) else json.dumps(content).encode()
    connection.request(method, path, body, {"Authorization": basic(found.key)})
    response = connection.getresponse()
    answer = response.status, json.loads(response.read() or b"null")
    connection.close()
    return answer


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _upsert(home: Home) -> None:
    variables = {"name": "run1", "project": "birds", "entity": "ada", "host": "h"}
    status, answer = _ask(home, "POST", "/graphql", {"query": UPSERT, "variables": variables})
    assert status == 200
    assert "errors" not in answer


@contextlib.contextmanager
def _taken(port: int = 0) -> Iterator[int]:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", port))
        taken.listen()
        yield taken.getsockname()[1]


def test_it_starts_tells_and_ends(home: Home, serve: Serve) -> None:
    served = serve()
    assert served.report == {"note": None}
    found = _discovery(home)
    assert found.running
    assert found.pid == served.process.pid
    assert found.url == f"http://127.0.0.1:{found.port}"
    assert _mode(home.path) == 0o700
    for path in (home.discovery, home.log, home.database, home.secret):
        assert _mode(path) == 0o600, path
    status, health = _ask(home, "GET", "/api/health")
    assert (status, health["pid"]) == (200, found.pid)
    served.process.send_signal(signal.SIGHUP)  # Its terminal closes.
    assert _ask(home, "GET", "/api/health")[0] == 200
    assert served.end() == 0
    assert _discovery(home).running is False
    log = home.log.read_text()
    assert "stopped" in log
    assert found.key not in log
    # All connections were closed: nothing is left beside the database.
    assert [path.name for path in home.path.glob("runyard.db*")] == ["runyard.db"]


@pytest.mark.parametrize("number", [signal.SIGINT, None])
def test_other_ways_to_end_it(home: Home, serve: Serve, number: signal.Signals | None) -> None:
    served = serve()
    if number is None:
        assert _ask(home, "POST", "/api/server/stop") == (200, {"stopping": True})
        assert served.process.wait(timeout=180) == 0
    else:
        assert served.end(number) == 0
    assert _discovery(home).running is False


def test_it_comes_back_where_it_was_with_the_same_key(home: Home, serve: Serve) -> None:
    first = serve()
    before = _discovery(home)
    _upsert(home)
    first.process.kill()
    first.process.wait()
    assert _discovery(home).running is True  # It could not say otherwise.
    again = serve()
    assert again.report == {"note": None}
    after = _discovery(home)
    assert (after.port, after.key) == (before.port, before.key)
    assert [run["id"] for run in _ask(home, "GET", "/api/runs")[1]] == ["run1"]


def test_when_its_port_was_taken_it_moves_and_says_so(home: Home, serve: Serve) -> None:
    serve().end()
    port = _discovery(home).port
    with _taken(port):
        note = serve().report["note"]
    moved = _discovery(home)
    assert moved.port != port
    assert str(port) in note
    assert moved.url in note
    assert _ask(home, "GET", "/api/health")[0] == 200


def test_a_port_that_was_asked_for_and_is_in_use(home: Home, serve: Serve) -> None:
    with _taken() as port:
        served = serve("--port", str(port))
        assert served.process.wait(timeout=180) == 1
    assert served.report["error"] == "ServerError"
    assert str(port) in served.report["what"]
    assert "in use" in served.report["said"]
    assert served.report["mend"]


@pytest.mark.parametrize(
    "words", [("--listen", "not-an-address.invalid"), ("--listen", "a" * 70), ("--port", "70000")]
)
def test_addresses_that_are_none(home: Home, serve: Serve, words: tuple[str, str]) -> None:
    served = serve(*words)
    assert served.process.wait(timeout=180) == 1
    assert served.report["error"] == "ServerError"
    assert words[1] in served.report["what"]


def test_a_second_server_leaves_at_once(home: Home, serve: Serve) -> None:
    first = serve()
    before = home.discovery.read_bytes()
    second = serve()
    assert second.process.wait(timeout=180) == 1
    assert "already" in second.report["what"]
    assert home.discovery.read_bytes() == before
    assert first.process.poll() is None


def test_a_damaged_database_is_left_as_it_is(home: Home, serve: Serve) -> None:
    prepare(home)
    home.database.write_bytes(b"this was a database once " * 400)
    before = home.database.read_bytes()
    served = serve()
    assert served.process.wait(timeout=180) == 1
    assert served.report["error"] == "StateError"
    assert str(home.database) in served.report["what"]
    assert "aside" in served.report["mend"]
    assert home.database.read_bytes() == before


def test_a_folder_from_a_newer_version(home: Home, serve: Serve) -> None:
    serve().end()
    connection = sqlite3.connect(home.database)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    served = serve()
    assert served.process.wait(timeout=180) == 1
    assert served.report["error"] == "StateError"
    assert "newer" in served.report["what"]


def test_an_upload_that_is_cut_off_on_the_wire(home: Home, serve: Serve) -> None:
    serve()
    _upsert(home)
    create = (
        'mutation { createRunFiles(input: {entityName: "ada", projectName: "birds", '
        'runName: "run1", files: ["a"]}) { files { uploadUrl } } }'
    )
    answer = _ask(home, "POST", "/graphql", {"query": create})[1]
    url = answer["data"]["createRunFiles"]["files"][0]["uploadUrl"]
    port = _discovery(home).port
    assert url.startswith(f"http://127.0.0.1:{port}/uploads/")
    path = "/uploads/" + url.rpartition("/")[2]
    assert _ask(home, "PUT", path, b"old")[0] == 200
    with socket.create_connection(("127.0.0.1", port)) as cut:
        head = f"PUT {path} HTTP/1.1\r\nHost: h\r\nContent-Length: 4000000\r\n\r\n"
        cut.sendall(head.encode() + b"n" * 2_000_000)
    unfinished = home.files / "unfinished"
    _until(lambda: not list(unfinished.iterdir()))
    stored = list((home.files / "1").iterdir())
    assert [path.read_bytes() for path in stored] == [b"old"]


def test_who_follows_a_console_does_not_hold_up_the_end(home: Home, serve: Serve) -> None:
    served = serve()
    _upsert(home)
    pages: list[Any] = []

    def follow() -> None:
        pages.append(_ask(home, "GET", "/api/runs/1/console?wait=30"))

    follower = threading.Thread(target=follow)
    follower.start()
    time.sleep(0.5)
    assert served.end() == 0
    follower.join()
    assert pages == [(200, {"text": "", "next": 0, "ended": False})]
    assert "Cancel" not in home.log.read_text()


def test_the_log_goes_round(home: Home) -> None:
    prepare(home)
    program = """
import logging, sys
from pathlib import Path
from runyard.home import Home
from runyard.server import serve
serve._LOG_BYTES = 2_000
home = Home(Path(sys.argv[1]))
home.crash_log.write_bytes(b"x" * 3_000)
serve._start_log(home)
for number in range(500):
    logging.getLogger("runyard.server").info("line %d", number)
"""
    subprocess.run([sys.executable, "-c", program, str(home.path)], check=True)
    names = sorted(path.name for path in home.path.glob("server.log*"))
    assert names == ["server.log", "server.log.1", "server.log.2", "server.log.3"]
    assert all(path.stat().st_size <= 2_000 for path in home.path.glob("server.log*"))
    assert "line 499" in home.log.read_text()
    assert home.crash_log.stat().st_size == 0


def test_the_starter_is_told_one_thing_and_no_other_file_is_written() -> None:
    reader, writer = os.pipe()
    starter = _Starter(writer)
    starter.tell({"note": None})
    other, again = os.pipe()  # The number of the closed pipe is given out again.
    starter.tell({"error": "late"})
    with os.fdopen(reader) as told:
        assert told.read() == '{"note": null}\n'
    os.close(again)
    with os.fdopen(other) as unwritten:
        assert unwritten.read() == ""


def _until(is_so: Callable[[], bool]) -> None:
    for _ in range(500):
        if is_so():
            return
        time.sleep(0.02)
    raise AssertionError("it did not come about")


def test_modules_are_loaded_once_and_never_looked_through_for_garbage(home: Home) -> None:
    code = (
        "import gc; from runyard.server.__main__ import main\n"
        "main(); print(gc.isenabled(), gc.get_freeze_count() > 50_000)"
    )
    words = ["--home", str(home.path), "--url", "refused once all is loaded"]
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
    )
    assert "is no address of a server" in done.stderr
    assert done.stdout == "True True\n"
