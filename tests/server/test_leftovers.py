"""What a killed `runyard run` left in the spool is taken in, once, and nothing stops the server."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runyard.home import Home
from runyard.server.processes import attempts
from runyard.server.tracker import Tracker
from runyard.server.tracking import leftovers
from tests.server.asgi import KEY, Client


@pytest.fixture
def dead() -> int:
    """The number of a process that has ended."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


@pytest.fixture
def key(client: Client) -> int:
    """A run with an attempt that has sent five bytes of its console."""
    run = client.post("/api/runs", {"id": "run1", "project": "birds", "command": ["python"]}).json()
    key: int = run["key"]
    client.post(f"/api/runs/{key}/attempts", {"token": "t", "host": "h", "pid": 1})
    client.post(f"/api/runs/{key}/attempts/1/console?offset=0", b"hello")
    return key


def _leave(home: Home, console: bytes | None, **record: Any) -> tuple[Path, Path]:
    path = home.spool / "run1-t.json"
    path.write_text(json.dumps({"number": 1, "host": socket.gethostname(), **record}))
    copy = path.with_suffix(".log")
    if console is not None:
        copy.write_bytes(console)
    return path, copy


def _run(client: Client) -> Any:
    return client.get("/api/run", name="run1").json()


def _text(client: Client, key: int) -> str:
    text: str = client.get(f"/api/runs/{key}/console").json()["text"]
    return text


def test_console_and_end_are_taken_in(
    client: Client, tracker: Tracker, home: Home, key: int, dead: int
) -> None:
    files = _leave(home, b"hello world", run=key, pid=dead, exit_code=-15, ended_at=99.0)
    tracker.take_in_leftovers()
    assert _text(client, key) == "hello world"
    run = _run(client)
    assert (run["state"], run["exit_code"], run["ended_at"]) == ("killed", 143, 99.0)
    assert not any(file.exists() for file in files)


def test_without_an_end_the_attempt_is_lost_and_the_client_will_tell(
    client: Client, tracker: Tracker, home: Home, key: int, dead: int
) -> None:
    heard = _run(client)["heartbeat_at"]
    _leave(home, b"hello world", run=key, pid=dead)
    tracker.take_in_leftovers()
    run = _run(client)
    assert run["state"] == "running"
    assert run["heartbeat_at"] == heard  # A dead process gives no sign of life.
    assert [attempt["cause"] for attempt in run["attempts"]] == ["lost"]


def test_a_long_console_in_pieces(
    client: Client,
    tracker: Tracker,
    home: Home,
    key: int,
    dead: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(leftovers, "_PIECE", 7)
    _leave(home, b"hello " + b"0123456789" * 20, run=key, pid=dead, exit_code=0, ended_at=1.0)
    tracker.take_in_leftovers()
    assert _text(client, key) == "hello " + "0123456789" * 20


def test_who_lives_is_left_alone(client: Client, tracker: Tracker, home: Home, key: int) -> None:
    files = _leave(home, b"hello world", run=key, pid=os.getpid(), exit_code=0, ended_at=1.0)
    tracker.take_in_leftovers()
    assert _text(client, key) == "hello"
    assert all(file.exists() for file in files)


def test_who_is_on_another_machine_is_left_alone(
    client: Client, tracker: Tracker, home: Home, key: int, dead: int
) -> None:
    files = _leave(home, b"", run=key, pid=dead, host="another-machine")
    tracker.take_in_leftovers()
    assert all(file.exists() for file in files)


def test_what_was_delivered_after_all_changes_nothing(
    client: Client, tracker: Tracker, home: Home, key: int, dead: int
) -> None:
    client.post(f"/api/runs/{key}/attempts/1/end", {"exit_code": 0, "ended_at": 50.0})
    files = _leave(home, b"hello", run=key, pid=dead, exit_code=0, ended_at=51.0)
    tracker.take_in_leftovers()
    assert _run(client)["ended_at"] == 50.0
    assert not any(file.exists() for file in files)


def test_of_a_run_that_is_gone(tracker: Tracker, home: Home, dead: int) -> None:
    files = _leave(home, b"x", run=77, pid=dead, exit_code=0, ended_at=1.0)
    tracker.take_in_leftovers()
    assert not any(file.exists() for file in files)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "3",
        "{}",
        '{"host": 3}',
        "\ud800",
        '{"host": "HERE", "pid": "x"}',
        '{"host": "HERE", "pid": DEAD, "run": "x", "number": 1}',
        '{"host": "HERE", "pid": DEAD, "run": KEY, "number": 1, "exit_code": "x", "ended_at": 1}',
    ],
)
def test_one_bad_record_stops_neither_the_others_nor_the_start(
    client: Client, tracker: Tracker, home: Home, key: int, dead: int, text: str
) -> None:
    text = text.replace("HERE", socket.gethostname()).replace("DEAD", str(dead))
    bad = home.spool / "a-bad.json"
    bad.write_bytes(text.replace("KEY", str(key)).encode(errors="surrogatepass"))
    _leave(home, b"hello world", run=key, pid=dead, exit_code=0, ended_at=1.0)
    tracker.close()
    again = Tracker(home)
    again.open(KEY)
    assert again._database.read(lambda c: attempts.read_console(c, key, 0, 99)).result() == (
        b"hello world",
        11,
    )
    assert bad.exists()
    again.close()


def test_its_owner_may_be_quicker(
    tracker: Tracker, home: Home, key: int, dead: int, caplog: pytest.LogCaptureFixture
) -> None:
    gone = home.spool / "gone.json"
    gone.symlink_to(home.spool / "nowhere")
    tracker.take_in_leftovers()
    assert not caplog.records
