"""A page's session: what is stored of it, when it ends, and what its cookie alone is worth."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time

import pytest
from starlette.routing import Route

from runyard.home import Home
from runyard.server.app import create_app
from runyard.server.page import login
from runyard.server.people import sessions
from runyard.server.tracker import Tracker
from tests.server.asgi import KEY, KEY_ID, Answer, Client
from tests.server.browsers import SAME_ORIGIN, Visitor, log_in, new_code
from tests.server.conftest import Upsert
from tests.server.persons import Person
from tests.server.test_auth_middleware import METHODS, OPEN, _filled

FILE = "/files/ada/birds/run1/notes.txt"
HOUR = 3600.0


@pytest.fixture
def visitor(client: Client) -> Visitor:
    return Visitor(client)


@pytest.fixture
def upload(client: Client, upsert: Upsert) -> str:
    """A file of a run, by its address."""
    upsert(name="run1")
    query = """mutation M($entity: String!, $project: String!, $run: String!, $files: [String!]!) {
      createRunFiles(input: {entityName: $entity, projectName: $project, runName: $run,
        files: $files}) { files { uploadUrl } } }"""
    names = {"entity": "ada", "project": "birds", "run": "run1", "files": ["notes.txt"]}
    made = client.graphql(query, names)["data"]["createRunFiles"]["files"][0]
    assert client.put(made["uploadUrl"], b"seen").status == 200
    return FILE


class Clock:
    """The server's time, moved by hand."""

    def __init__(self) -> None:
        self.ahead = 0.0
        self._time = time.time

    def __call__(self) -> float:
        return self._time() + self.ahead


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    moved = Clock()
    monkeypatch.setattr(time, "time", moved)
    return moved


def rows(tracker: Tracker) -> list[sqlite3.Row]:
    connection = sqlite3.connect(f"file:{tracker.home.database}?vfs=unix-excl", uri=True)
    connection.row_factory = sqlite3.Row
    found = connection.execute("SELECT * FROM page_sessions").fetchall()
    connection.close()
    return found


def paths(tracker: Tracker) -> list[Route]:
    routes = create_app(tracker, stop=lambda: None).routes
    return [route for route in routes if isinstance(route, Route)]


@pytest.mark.parametrize("proof", ["page", "", "x" * 43, "é"])
def test_a_stolen_cookie_opens_nothing(
    client: Client, tracker: Tracker, upload: str, visitor: Visitor, proof: str
) -> None:
    """Another user's program gets it from the browser, on another port of the same host."""
    headers = {**SAME_ORIGIN, "cookie": visitor.cookie, "x-runyard": proof}
    for route in paths(tracker):
        if route.path in OPEN:
            continue
        for method in METHODS:
            answer = client.request(method, _filled(route.path), [b"{}"], key=None, headers=headers)
            assert answer.status == 401, f"{method} {route.path}"
    stream = {**headers, "accept": "text/event-stream"}
    for target in ("/api/live?projects=1", upload, f"{upload}?ticket=", f"{upload}?ticket=%C3%A9"):
        assert client.request("GET", target, key=None, headers=stream).status == 401, target


def test_a_proof_without_its_cookie_opens_nothing(client: Client, visitor: Visitor) -> None:
    other = Visitor(client)
    for cookie in ("", other.cookie, visitor.cookie[:-1], visitor.cookie + "x"):
        assert visitor.ask("GET", "/api/me", headers={"cookie": cookie}).status == 401
    assert visitor.get("/api/me").json()["name"] == "ada"


def test_a_ticket_reads_files_and_nothing_else(
    client: Client, tracker: Tracker, upload: str, visitor: Visitor
) -> None:
    assert visitor.load(upload).body == b"seen"
    assert visitor.load(upload, Visitor(client).ticket).status == 401
    assert client.request("GET", f"{upload}?ticket={visitor.ticket}", key=None).status == 401
    headers = {"cookie": visitor.cookie, "x-runyard": "page"}
    for route in paths(tracker):
        if route.path in OPEN:
            continue
        for method in set(METHODS) - ({"GET", "HEAD"} if "/api/" not in route.path else set()):
            target = f"{_filled(route.path)}?ticket={visitor.ticket}"
            answer = client.request(method, target, [b"{}"], key=None, headers=headers)
            assert answer.status == 401, f"{method} {route.path}"


def test_neither_half_is_stored(tracker: Tracker, visitor: Visitor) -> None:
    (row,) = rows(tracker)
    assert row["used_from"] == "127.0.0.1"
    stored = " ".join(str(value) for value in tuple(row))
    for secret in (visitor.cookie.partition("=")[2], visitor.proof, visitor.ticket, KEY):
        assert secret not in stored


def test_logging_out_ends_the_session_at_once(
    client: Client, tracker: Tracker, upload: str, visitor: Visitor
) -> None:
    other = Visitor(client)
    assert visitor.ask("POST", "/api/logout").status == 200
    assert visitor.get("/api/me").status == 401
    assert visitor.load(upload).status == 401
    assert other.get("/api/me").status == 200
    assert len(rows(tracker)) == 1


def test_a_new_login_ends_the_browsers_old_session(client: Client, visitor: Visitor) -> None:
    assert visitor.ask("POST", "/api/login", {"code": new_code(client)}).status == 200
    assert visitor.get("/api/me").status == 401
    assert len(client.get("/api/sessions").json()) == 1


def test_a_link_of_another_user_ends_no_session_unasked(
    client: Client, visitor: Visitor, bob: Person
) -> None:
    """Anybody can send a link: what its visitor then writes would be its author's."""
    for secret in (new_code(client, bob.key), bob.key):
        refused = visitor.ask("POST", "/api/login", {"code": secret})
        assert refused.status == 409
        assert refused.json()["error"] == "You are logged in as ada. This link logs you in as bob."
        assert "set-cookie" not in refused.headers
        assert visitor.get("/api/me").json()["name"] == "ada"
    # The code is still good, once, for who agrees.
    code = new_code(client, bob.key)
    assert visitor.ask("POST", "/api/login", {"code": code}).status == 409
    agreed = visitor.ask("POST", "/api/login", {"code": code, "replace": True})
    assert (agreed.status, agreed.json()["name"]) == (200, "bob")
    assert visitor.get("/api/me").status == 401
    assert log_in(client, code).status == 403


def test_a_session_ends_with_its_key(ada: Person, bob: Person, client: Client) -> None:
    key = bob.post("/api/keys", {"label": "page"}).json()
    his, lasting = Visitor(client, key["key"]), Visitor(client, bob.key)
    assert his.get("/api/me").json()["name"] == "bob"
    assert bob.delete(f"/api/users/bob/keys/{key['id']}").status == 200
    assert his.get("/api/me").status == 401
    assert lasting.get("/api/me").status == 200
    client.request("DELETE", "/api/users/bob")
    assert lasting.get("/api/me").status == 401
    assert ada.get("/api/sessions").json() == []


def test_a_stranger_at_our_port_ends_all_sessions(tracker: Tracker, visitor: Visitor) -> None:
    """Pages that were open sent both halves there."""
    tracker.accounts.retire_keys("was retired: another program had port 4711", 4711)
    assert visitor.get("/api/me").status == 401
    assert rows(tracker) == []


def test_a_session_that_nobody_uses_ends_and_one_in_use_goes_on(
    client: Client, visitor: Visitor, clock: Clock
) -> None:
    idle = Visitor(client)
    for _ in range(2):
        clock.ahead += 11 * HOUR
        assert visitor.get("/api/me").status == 200
    assert idle.get("/api/me").status == 401
    assert idle.get("/api/me").status == 401, "a refused request is no use"


def test_no_session_outlives_a_week(visitor: Visitor, clock: Clock) -> None:
    for _ in range(16):
        clock.ahead += 10 * HOUR
        assert visitor.get("/api/me").status == 200
    clock.ahead += 10 * HOUR
    assert visitor.get("/api/me").status == 401


def test_use_is_written_down_now_and_then(
    client: Client, tracker: Tracker, visitor: Visitor, clock: Clock
) -> None:
    def store() -> None:
        client.together(tracker.accounts.store_uses())

    first = rows(tracker)[0]["used_at"]
    clock.ahead += 60
    visitor.get("/api/me")
    store()
    assert rows(tracker)[0]["used_at"] == first, "not a write for every request"
    clock.ahead += 300
    visitor.get("/api/me")
    store()
    assert rows(tracker)[0]["used_at"] > first + 300
    clock.ahead += 13 * HOUR
    store()
    assert rows(tracker) == [], "what is over is forgotten"


def test_a_restart_keeps_sessions_and_their_last_use(
    client: Client, tracker: Tracker, visitor: Visitor, clock: Clock
) -> None:
    clock.ahead += 100
    visitor.get("/api/me")
    tracker.close()
    again = Tracker(Home(tracker.home.path))
    again.open(KEY)
    try:
        after = Client(create_app(again, stop=lambda: None))
        (listed,) = after.get("/api/sessions").json()
        assert listed["used_at"] > listed["created_at"] + 99
        visitor.client = after
        assert visitor.get("/api/me").json()["name"] == "ada"
        visitor.ask("POST", "/api/logout")
        assert visitor.get("/api/me").status == 401
        after.close()
    finally:
        again.close()


def test_a_stream_ends_with_its_session(client: Client, visitor: Visitor) -> None:
    headers = {
        "cookie": visitor.cookie,
        "x-runyard": visitor.proof,
        "accept": "text/event-stream",
    }

    async def leave() -> Answer:
        await asyncio.sleep(0.2)
        sent = {"cookie": visitor.cookie, "x-runyard": visitor.proof}
        return await client.exchange("POST", "/api/logout", [b"{}"], key=None, headers=sent)

    stream = client.exchange("GET", "/api/live?projects=1", key=None, headers=headers)
    news, _ = client.together(asyncio.wait_for(stream, 60), leave())
    assert news.body.startswith(b"id: ")


ADMINISTRATION = [
    ("POST", "/api/users", {"name": "eve"}),
    ("DELETE", "/api/users/bob", {}),
    ("POST", "/api/keys", {"label": "mine"}),
    ("DELETE", "/api/users/ada/keys?kind=run", {}),
    ("DELETE", f"/api/users/ada/keys/{KEY_ID}", {}),
    ("POST", "/api/teams", {"name": "crew"}),
    ("DELETE", "/api/teams/birders", {}),
    ("PUT", "/api/teams/birders/members/bob", {}),
    ("DELETE", "/api/teams/birders/members/bob", {}),
    ("DELETE", "/api/sessions", {}),
    ("DELETE", "/api/sessions/x", {}),
]
# Not even with one.
BY_KEY = [
    ("POST", "/api/login/codes", {}),
    ("POST", "/api/server/stop", {}),
    ("POST", "/api/server/backup", {"path": "/tmp/x"}),
    ("POST", "/graphql", {"query": "mutation { generateApiKey(input: {}) { apiKey { name } } }"}),
]


@pytest.mark.parametrize(("method", "path", "content"), ADMINISTRATION)
def test_administration_asks_again(
    bob: Person, visitor: Visitor, clock: Clock, method: str, path: str, content: object
) -> None:
    clock.ahead += sessions.CONFIRMED_SECONDS
    refused = visitor.ask(method, path, content)
    assert (refused.status, refused.json()["confirm"]) == (403, "runyard ui --code")
    code = new_code(visitor.client)
    assert visitor.ask("POST", "/api/login/confirm", {"code": code}).status == 200
    assert "confirm" not in visitor.ask(method, path, content).json()
    clock.ahead += sessions.CONFIRMED_SECONDS
    assert "confirm" in visitor.ask(method, path, content).json(), "ten minutes later, once more"


@pytest.mark.parametrize(("method", "path", "content"), BY_KEY)
def test_what_takes_the_key_is_closed_to_every_session(
    visitor: Visitor, method: str, path: str, content: object
) -> None:
    answer = visitor.ask(method, path, content)
    assert (answer.status, "key" in answer.json()["error"]) == (403, True)


def test_only_a_fresh_secret_of_the_same_user_confirms(
    bob: Person, visitor: Visitor, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login, "REFUSAL_SECONDS", 0.0)
    clock.ahead += sessions.CONFIRMED_SECONDS
    used = new_code(visitor.client)
    assert visitor.ask("POST", "/api/login/confirm", {"code": used}).status == 200
    clock.ahead += sessions.CONFIRMED_SECONDS
    for wrong in (used, bob.key, new_code(visitor.client, bob.key), visitor.proof, None):
        assert visitor.ask("POST", "/api/login/confirm", {"code": wrong}).status == 403
    assert visitor.ask("POST", "/api/keys").status == 403
    assert visitor.ask("POST", "/api/login/confirm", {"code": KEY}).status == 200
    assert visitor.ask("POST", "/api/keys").status == 200


def test_every_route_that_changes_people_asks_again(tracker: Tracker) -> None:
    """A new one is either listed above, or here among what a page does every day."""
    people = ("/api/users", "/api/keys", "/api/teams", "/api/sessions", "/api/server", "/graphql")
    listed = {(method, path) for method, path, _ in ADMINISTRATION + BY_KEY}
    for route in paths(tracker):
        if route.path.startswith(people):
            for method in (route.methods or set()) - {"GET", "HEAD"}:
                matching = [
                    path
                    for listed_method, path in listed
                    if listed_method == method and route.path_regex.match(path.partition("?")[0])
                ]
                assert matching, f"{method} {route.path}"


def test_sessions_are_listed_and_ended(ada: Person, bob: Person, client: Client) -> None:
    mine, my_other, his = Visitor(client), Visitor(client), Visitor(client, bob.key)
    seen = {session["user"] for session in his.get("/api/sessions").json()}
    assert seen == {"bob"}, "others' are not there"
    listed = mine.get("/api/sessions").json()
    assert sorted(session["user"] for session in listed) == ["ada", "ada", "bob"]
    (current,) = [session for session in listed if session["current"]]
    assert current["key"] == KEY_ID
    assert current["used_from"] == "127.0.0.1"
    (of_bob,) = [session["id"] for session in listed if session["user"] == "bob"]

    assert his.ask("DELETE", f"/api/sessions/{current['id']}").status == 404
    assert mine.ask("DELETE", f"/api/sessions/{of_bob}").json() == {"ended": 1}
    assert his.get("/api/me").status == 401
    assert mine.ask("DELETE", "/api/sessions").json() == {"ended": 1}
    assert (mine.get("/api/me").status, my_other.get("/api/me").status) == (200, 401)
    assert ada.delete("/api/sessions").json() == {"ended": 1}
    assert mine.get("/api/me").status == 401


def test_many_logins_do_not_fill_the_store(
    client: Client, tracker: Tracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "_MOST_SESSIONS", 3)
    visitors = [Visitor(client) for _ in range(5)]
    assert [one.get("/api/me").status for one in visitors] == [401, 401, 200, 200, 200]
    assert len(rows(tracker)) == 3


def test_a_browsers_name_is_kept_short(client: Client, tracker: Tracker) -> None:
    body = json.dumps({"code": new_code(client)}).encode()
    headers = {**SAME_ORIGIN, "user-agent": "Mozilla/5.0 " + "x" * 9000}
    assert client.request("POST", "/api/login", [body], key=None, headers=headers).status == 200
    assert len(rows(tracker)[0]["browser"]) == 300
