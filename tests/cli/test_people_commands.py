"""`runyard users` with its keys, sessions and teams, as the state folder's owner types them."""

from __future__ import annotations

import getpass
import json
import re
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from runyard.client.api import Api
from runyard.client.discover import ensure_server
from runyard.client.http import Connection
from runyard.errors import ServerError
from runyard.home import Home
from tests.conftest import run_runyard


@pytest.fixture(scope="module")
def yard(module_home: Home) -> Home:
    return module_home


def typed(*words: str) -> Any:
    done = run_runyard(*words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def refused(*words: str) -> str:
    done = run_runyard(*words)
    assert done.returncode in (1, 2), done.stdout
    assert "Traceback" not in done.stderr
    return done.stderr


def test_a_user_is_added_used_and_removed(yard: Home) -> None:
    done = run_runyard("users", "add", "bob")
    assert done.returncode == 0, done.stderr
    key = done.stdout.strip()
    assert len(key) == 40
    assert "not shown again" in done.stderr
    bob = Api(Connection(ensure_server(yard).api.url, key))
    assert bob.runs() == []
    assert [user["name"] for user in typed("users", "list")] == sorted(["bob", getpass.getuser()])
    assert "admin" in run_runyard("users", "list").stdout
    assert "already is a user 'bob'" in refused("users", "add", "bob")
    assert run_runyard("users", "remove", "bob").returncode == 0
    with pytest.raises(ServerError, match="refused the key"):
        bob.runs()
    assert "no user 'bob'" in refused("users", "remove", "bob")


def test_keys_are_made_listed_and_revoked(yard: Home) -> None:
    made = typed("users", "keys", "add", "--label", "laptop")
    laptop = Api(Connection(ensure_server(yard).api.url, made["key"]))
    assert laptop.health()["pid"]
    shown = run_runyard("users", "keys", "list").stdout
    assert "laptop" in shown
    assert made["key"] not in shown
    assert run_runyard("users", "keys", "revoke", "laptop").returncode == 0
    with pytest.raises(ServerError, match="refused the key"):
        laptop.health()
    assert "no key is called 'laptop'" in refused("users", "keys", "revoke", "laptop")
    assert "server.json" in refused("users", "keys", "revoke", "state folder")


def test_keys_of_shells_and_runs_are_told_apart(yard: Home) -> None:
    people = ensure_server(yard).api.people
    for number in range(2):
        people.shell_key(f"shell on node{number}", None)
        people.add_key(f"run {number}", kind="run")
    listed = run_runyard("users", "keys")
    assert "folder  all" in listed.stdout
    assert "shell on node1" in listed.stdout
    assert "run 1" not in listed.stdout
    assert "2 keys of runs" in listed.stderr
    assert "run 1" in run_runyard("users", "keys", "--all").stdout
    told = {key["label"]: key for key in typed("users", "keys", "list")}
    assert told["run 1"]["kind"] == "run"
    assert told["run 1"]["scope"] == told["shell on node0"]["scope"] == "runs"
    assert told["shell on node0"]["expires_at"] > time.time()
    assert typed("users", "keys", "revoke", "--kind", "shell") == {"revoked": 2}
    assert {key["kind"] for key in typed("users", "keys", "list")} == {"folder", "nodes", "run"}
    assert "which key?" in refused("users", "keys", "revoke")
    assert "--kind is for" in refused("users", "keys", "list", "--kind", "run")
    reader = typed("users", "keys", "add", "--label", "reader", "--scope", "runs")
    assert Api(Connection(ensure_server(yard).api.url, reader["key"])).runs() == []
    with pytest.raises(ServerError, match="needs your own key"):
        Api(Connection(ensure_server(yard).api.url, reader["key"])).people.list_keys()


def test_sessions_are_listed_and_ended(yard: Home) -> None:
    api = ensure_server(yard).api
    assert typed("users", "sessions") == []
    for _ in range(3):
        browse(api.url, run_runyard("ui", "--code").stdout.strip())
    listed = typed("users", "sessions")
    assert [session["user"] for session in listed] == [getpass.getuser()] * 3
    shown = run_runyard("users", "sessions", "list").stdout
    assert "Firefox" in shown
    assert "\x9b" not in shown, "a browser calls itself what it likes"
    assert run_runyard("users", "sessions", "end", listed[0]["id"][:8]).returncode == 0
    assert "no session is called" in refused("users", "sessions", "end", listed[0]["id"])
    assert typed("users", "sessions", "end", "--all") == {"ended": 2}
    assert typed("users", "sessions") == []


def browse(url: str, code: str) -> None:
    """Log a browser in that has escape codes in its name."""
    request = urllib.request.Request(
        f"{url}/api/login",
        json.dumps({"code": code}).encode(),
        {"X-Runyard": "page", "User-Agent": "Firefox \x9b31mred"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 200


def test_teams_come_and_go(yard: Home) -> None:
    typed("users", "add", "eve")
    (crew,) = typed("users", "teams", "add", "crew", "eve")["teams"]
    assert "eve" in crew["members"]
    (crew,) = typed("users", "teams", "remove", "crew", "eve")["teams"]
    assert "eve" not in crew["members"]
    (crew,) = typed("users", "teams", "add", "crew", "eve")["teams"]
    assert "eve" in crew["members"]
    assert "crew" in run_runyard("users", "teams", "list").stdout
    assert typed("users", "teams", "remove", "crew")["teams"] == []
    assert "no team 'crew'" in refused("users", "teams", "remove", "crew")


def test_an_invitation_is_shown_and_accepted_from_another_account(
    yard: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two who have keys for somebody else's server."""
    url = ensure_server(yard).api.url
    keys = {name: typed("users", "add", name)["key"] for name in ("bill", "emma")}
    home = tmp_path / "home"
    home.mkdir()

    def typed_by(name: str, *words: str) -> tuple[str, str]:
        with monkeypatch.context() as theirs:
            theirs.setenv("HOME", str(home))
            theirs.setenv("WANDB_API_KEY", keys[name])
            done = run_runyard("users", "teams", *words, "--host", url)
        assert done.returncode == 0, done.stderr
        return done.stdout, done.stderr

    shown, _ = typed_by("bill", "add", "pack", "emma", "nobody")
    assert re.search(r"pack +bill +emma, nobody", shown)
    assert re.search(
        r"bill invited you to the team pack .*`runyard users teams join pack`", typed_by("emma")[1]
    )
    assert re.search(r"pack +bill, emma +nobody", typed_by("emma", "join", "pack")[0])
    assert "not in the team pack any more" in typed_by("emma", "leave", "pack")[0]
    assert re.search(r"pack +bill +nobody", typed_by("bill")[0])
    assert "nobody joins for others" in refused("users", "teams", "join", "pack", "emma")


@pytest.mark.parametrize(
    "words",
    [
        ("users", "add"),
        ("users", "list", "bob"),
        ("users", "keys", "revoke"),
        ("users", "keys", "list", "x"),
        ("users", "sessions", "end"),
        ("users", "sessions", "list", "x"),
        ("users", "sessions", "end", "x", "--all"),
        ("users", "teams", "add"),
        ("users", "teams", "list", "x"),
        ("users", "teams", "join"),
    ],
)
def test_a_wrong_line_is_told_so(yard: Home, words: tuple[str, ...]) -> None:
    assert "  try:  " in refused(*words)
