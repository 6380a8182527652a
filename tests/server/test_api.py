"""runyard's own API: runs announced, listed, found; attempts; health."""

from __future__ import annotations

from typing import Any

import pytest

from runyard.home import Home
from runyard.server.app import create_app
from runyard.server.tracker import Tracker
from tests.server.asgi import Client
from tests.server.conftest import Upsert

NEW = {"id": "run1", "project": "birds", "command": ["python", "train.py"]}


def _ids(client: Client, **query: Any) -> list[str]:
    return [run["id"] for run in client.get("/api/runs", **query).json()]


def test_health(client: Client, upsert: Upsert, home: Home) -> None:
    upsert(name="run1")
    client.post("/api/runs", {**NEW, "id": "run2"})
    health = client.get("/api/health").json()
    assert (health["runs"], health["running"]) == (2, 1)
    assert health["home"] == str(home.path)
    assert health["database_bytes"] > 0
    assert health["writer"]["commit"]["count"] >= 1
    assert health["writer"]["commit"]["longest"] > 0


def test_stopping(tracker: Tracker) -> None:
    asked: list[bool] = []
    client = Client(create_app(tracker, stop=lambda: asked.append(True)))
    assert client.post("/api/server/stop", b"").status == 200
    assert asked == [True]
    client.close()


def test_announcing_a_run(client: Client) -> None:
    told = {**NEW, "name": "wren", "tags": ["t"], "notes": "n", "group": "g", "folder": "f"}
    made = client.post("/api/runs", told).json()
    assert made["state"] == "pending"
    assert made["entity"] == "ada"
    for name in ("id", "name", "project", "command", "tags", "notes", "group", "folder"):
        assert made[name] == told[name]
    assert client.post("/api/runs", told).json() == made


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": None},
        {"id": ""},
        {"id": "a/b"},
        {"id": 3},
        {"id": " x"},
        {"project": None},
        {"project": "a/b"},
        {"entity": "a/b"},
        {"command": []},
        {"command": "ls"},
        {"command": [1]},
        {"tags": "x"},
        {"tags": [1]},
        {"name": 3},
        {"notes": []},
    ],
    ids=str,
)
def test_announcing_nonsense(client: Client, wrong: dict[str, Any]) -> None:
    answer = client.post("/api/runs", {**NEW, **wrong})
    assert answer.status == 400
    assert answer.json()["error"]
    assert client.get("/api/runs").json() == []


def test_a_project_may_be_named_after_any_folder(client: Client) -> None:
    name = "a b'c\"d;$(touch x)\nnew line é"
    assert client.post("/api/runs", {**NEW, "project": name}).json()["project"] == name
    assert _ids(client, project=name) == ["run1"]


def test_lists_the_newest_first_and_narrows(client: Client, upsert: Upsert) -> None:
    upsert(name="one", project="birds")
    upsert(name="two", project="fish")
    upsert(name="three", project="birds", entity="team")
    client.post("/files/ada/birds/one/file_stream", {"complete": True, "exitcode": 1})
    assert _ids(client) == ["three", "two", "one"]
    assert _ids(client, limit=2) == ["three", "two"]
    assert _ids(client, limit=0) == []
    assert _ids(client, project="birds") == ["three", "one"]
    assert _ids(client, project="ada/birds") == ["one"]
    assert _ids(client, state="failed") == ["one"]
    assert _ids(client, state="failed", project="fish") == []
    assert _ids(client, project="' OR 1 --") == []


@pytest.mark.parametrize("limit", ["x", "-1", "1e3", "9" * 30, "9" * 5000], ids=lambda t: t[:10])
def test_numbers_that_are_none(client: Client, limit: str) -> None:
    assert client.get("/api/runs", limit=limit).status == 400


def _found(client: Client, words: str) -> str:
    answer = client.get("/api/run", name=words)
    if answer.status == 404:
        return "ambiguous" if "more than one" in answer.text else "nothing"
    found: str = answer.json()["id"]
    return found


def test_finding_by_what_a_person_types(client: Client, upsert: Upsert) -> None:
    upsert(name="abc123", displayName="swift-wren-1")
    upsert(name="abd456", displayName="with/slash")
    upsert(name="abc", project="fish", displayName="swift-wren-1")
    upsert(name="a%c_é🦜", project="odd")
    for words, wanted in {
        "abc123": "abc123",
        "abc": "abc",  # The whole id before the beginning of another.
        "abd": "abd456",
        "ab": "ambiguous",
        "swift-wren-1": "ambiguous",
        "fish/swift-wren-1": "abc",
        "birds/swift-wren-1": "abc123",
        "ada/birds/swift-wren-1": "abc123",
        "team/birds/swift-wren-1": "nothing",
        "with/slash": "abd456",
        "birds/ab": "ambiguous",
        "birds/abc": "abc123",
        "fish/ab": "abc",
        "a%": "a%c_é🦜",
        "a%c_é": "a%c_é🦜",
        "a_": "nothing",
        "%": "nothing",
        "_": "nothing",
        "ABC": "nothing",
        "": "nothing",
        "/": "nothing",
        "birds/": "nothing",
        "' OR 1 --": "nothing",
    }.items():
        assert _found(client, words) == wanted, words


def test_who_is_meant_is_asked_back(client: Client, upsert: Upsert) -> None:
    upsert(name="one", project="birds")
    upsert(name="one", project="fish")
    told = client.get("/api/run", name="one").json()["error"]
    assert "birds/one" in told
    assert "fish/one" in told


def test_one_run_in_full(client: Client, upsert: Upsert) -> None:
    upsert(name="run1", config='{"lr": {"value": 0.1}, "plain": 3, "_wandb": {"value": {}}}')
    run = client.get("/api/run", name="run1").json()
    assert run["config"] == {"lr": 0.1, "plain": 3}
    assert run["attempts"] == []
    assert run["files"] == []
    assert run["steps"] == 0


def _attempt(client: Client) -> str:
    key = client.post("/api/runs", NEW).json()["key"]
    client.post(f"/api/runs/{key}/attempts", {"token": "t", "host": "h", "pid": 7})
    return f"/api/runs/{key}/attempts"


def test_an_attempt_from_begin_to_end(client: Client) -> None:
    attempts = _attempt(client)
    again = client.post(attempts, {"token": "t", "host": "h", "pid": 7})
    assert again.json() == {"number": 1}
    console = f"{attempts}/1/console"
    assert client.post(f"{console}?offset=0", b"hello").json() == {"stored": 5, "stop": False}
    assert client.post(f"{console}?offset=99", b"gap").json() == {"stored": 5, "stop": False}
    ended = client.post(f"{attempts}/1/end", {"exit_code": -2, "ended_at": 12.5}).json()
    assert (ended["state"], ended["exit_code"], ended["ended_at"]) == ("killed", 130, 12.5)
    told = client.get("/api/run", name="run1").json()["attempts"]
    assert told[0]["cause"] == "SIGINT"
    assert told[0]["console_bytes"] == 5
    assert "token" not in told[0]


@pytest.mark.parametrize(
    ("path", "content", "status"),
    [
        ("", {"token": "t", "host": "h"}, 400),
        ("", {"token": 1, "host": "h", "pid": 1}, 400),
        ("", {"token": "t", "host": "h", "pid": "x"}, 400),
        ("", {"token": "t", "host": "h", "pid": 2**70}, 400),
        ("/1/end", {}, 400),
        ("/1/end", {"exit_code": 0}, 400),
        ("/1/end", {"exit_code": "0", "ended_at": 1}, 400),
        ("/1/end", {"exit_code": True, "ended_at": 1}, 400),
        ("/1/end", {"exit_code": 0, "ended_at": float("nan")}, 400),
        ("/1/end", {"exit_code": 2**70, "ended_at": 1}, 400),
        ("/2/end", {"exit_code": 0, "ended_at": 1}, 404),
        ("/2/console", b"x", 404),
        (f"/{2**70}/console", b"x", 404),
        ("/1/console?offset=x", b"x", 400),
        ("/1/console?offset=-1", b"x", 400),
    ],
    ids=str,
)
def test_attempts_that_make_no_sense(
    client: Client, path: str, content: object, status: int
) -> None:
    assert client.post(f"{_attempt(client)}{path}", content).status == status
    assert client.get("/api/run", name="run1").json()["state"] == "running"


@pytest.mark.parametrize("key", ["2", str(2**70)])
def test_runs_that_are_not_there(client: Client, key: str) -> None:
    assert client.get(f"/api/runs/{key}/metrics").status == 404
    assert client.get(f"/api/runs/{key}/console").status == 404
    assert client.post(f"/api/runs/{key}/attempts", {}).status == 404


def test_waiting_for_the_console_ends(client: Client) -> None:
    _attempt(client)
    for wait in ("0", "0.01", "-5", "nan", "-inf"):
        assert client.get("/api/runs/1/console", wait=wait).json() == {
            "text": "",
            "next": 0,
            "ended": False,
        }
    assert client.get("/api/runs/1/console", wait="soon").status == 400
