"""Nobody comes in without the key, on any route that there is or will be."""

from __future__ import annotations

import base64
import logging
import re

import pytest
from starlette.routing import Route

from runyard.server.app import create_app
from runyard.server.people.signed_addresses import Kind
from runyard.server.tracker import Tracker
from tests.server.asgi import KEY, KEY_ID, Answer, Client, basic
from tests.server.conftest import Upsert

# Who has no key may knock here. A new route is guarded unless it is added to this list too.
OPEN = {
    "/uploads/{token}",
    "/uploads/artifacts/{token}",
    "/uploads/manifests/{token}",
    "/downloads/wandb_artifacts/{token}",
    "/downloads/history/{token}",
    "/downloads/manifests/{token}/wandb_manifest.json",
    "/sdk/{rest:path}",
    "/",
    "/jobs",
    "/settings",
    "/assets/{name}",
    "/api/login",
    "/api/proof",
    "/{entity}/{project}",
    "/{entity}/{project}/{view:path}",
    "/{entity}/{project}/runs/{run}",
    "/{entity}/{project}/sweeps/{sweep}",
}
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"]
WRONG = {
    "no key": None,
    "another key": basic("x" * 40),
    "an empty key": basic(""),
    "almost the key": basic(KEY[:-1]),
    "the key's first half": basic(KEY[:20]),
    "no colon": "Basic " + base64.b64encode(KEY.encode()).decode(),
    "bearer": f"Bearer {KEY}",
    "not base64": "Basic !!!!",
    "odd base64": "Basic abc",
    "not text": "Basic " + base64.b64encode(b"api:\xff\xfe").decode(),
    "nothing": "Basic ",
    "bytes": "Basic \xe9\xff",
}


def _paths(client: Client, tracker: Tracker) -> list[str]:
    routes = create_app(tracker, stop=lambda: None).routes
    paths = [route.path for route in routes if isinstance(route, Route)]
    assert len(paths) == len(routes)
    return paths


def _filled(path: str) -> str:
    """An address of that route: of the one run there is, as far as names go."""
    values = {"entity": "ada", "project": "birds", "run": "run1", "key": "1", "number": "1"}
    return re.sub(r"{(\w+)[^}]*}", lambda found: values.get(found[1], "x"), path)


def _ask(client: Client, method: str, path: str, authorization: str | None) -> Answer:
    headers = {} if authorization is None else {"authorization": authorization}
    return client.request(method, path, [b"{}"], key=None, headers=headers)


@pytest.mark.parametrize("authorization", WRONG.values(), ids=WRONG.keys())
def test_every_route_needs_the_key(
    client: Client, tracker: Tracker, upsert: Upsert, authorization: str | None
) -> None:
    upsert(name="run1", displayName="a secret name")
    for path in set(_paths(client, tracker)) - OPEN:
        for method in METHODS:
            answer = _ask(client, method, _filled(path), authorization)
            assert answer.status == 401, f"{method} {path}"
            assert answer.headers["www-authenticate"].startswith("Basic")
            assert answer.json() == {"error": "this needs the key: see `runyard env`"}


def test_the_open_routes_are_these(client: Client, tracker: Tracker) -> None:
    assert set(_paths(client, tracker)) > OPEN


@pytest.mark.parametrize(
    "path",
    [
        "/graphql/",
        "/api",
        "/api/",
        "/api/nonsense",
        "/api/health/",
        "//api/health",
        "/files/a/b",
        "/%61pi/health",
        "/api/runs/1/console?after=0",
        "/uploads/",
        "/a",
    ],
)
def test_nothing_is_told_beside_the_routes(client: Client, upsert: Upsert, path: str) -> None:
    upsert(name="run1")
    for method in METHODS:
        assert _ask(client, method, path, None).status == 401, method


@pytest.mark.parametrize(
    "path",
    ["/ada/birds", "/ada/birds/runs/run1", "/ada/birds/runs/nobody", "/ada/birds/sweeps/abcd1234"],
)
def test_signposts_tell_nothing(client: Client, upsert: Upsert, path: str) -> None:
    before = _ask(client, "GET", path, None)
    upsert(name="run1", displayName="a secret name", notes="a secret")
    after = _ask(client, "GET", path, None)
    assert (before.status, before.body) == (after.status, after.body)
    assert after.status == 200
    assert b"secret" not in after.body
    for method in ("POST", "PUT", "DELETE"):
        assert _ask(client, method, path, None).status == 405


def test_the_command_on_a_signpost_is_safe_to_copy(client: Client) -> None:
    hostile = client.request("GET", "/a/b/runs/%24%28reboot%29", key=None)
    assert "runyard show '$(reboot)'" in hostile.text
    assert "runyard runs" in client.request("GET", "/a/b/runs/x%0Areboot", key=None).text
    hostile = client.request("GET", "/a/b/sweeps/%24%28reboot%29", key=None)
    assert "runyard show '$(reboot)' --best" in hostile.text
    assert "runyard runs --sweeps" in client.request("GET", "/a/b/sweeps/x%0Areboot", key=None).text


def test_telemetry_is_not_wanted(client: Client) -> None:
    """Any other answer than 404 or 405 makes a client send it, and it asks without a key."""
    for path in ("/sdk/otel/v1/metrics", "/sdk/otel/v1/logs"):
        assert client.request("POST", path, key=None).status == 404
        assert client.request("POST", path).status == 404


def test_with_the_key_unknown_addresses_are_unknown(client: Client) -> None:
    assert client.get("/api/nonsense").status == 404
    assert client.get("/files/a").status == 404
    assert client.request("DELETE", "/api/runs").status == 405


def test_the_scheme_may_be_written_in_any_case(client: Client) -> None:
    authorization = basic(KEY).replace("Basic", "bAsIc")
    assert _ask(client, "GET", "/api/health", authorization).status == 200


def test_nothing_secret_is_logged(
    client: Client,
    tracker: Tracker,
    upsert: Upsert,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = "hunter2-hunter2"
    upsert(name="run1", config=f'{{"password": {{"value": "{secret}"}}}}')
    url = tracker.accounts.addresses.url("http://h", Kind.RUN_FILE_UP, KEY_ID, 1, "a")
    stream = "/files/ada/birds/run1/file_stream"
    client.post(stream, {"files": {"output.log": {"offset": 0, "content": [secret]}}})
    client.post(stream, {"files": {"output.log": {"offset": 0, "content": secret}}})
    client.post(stream, secret.encode())
    client.post("/graphql", {"query": secret})
    client.post("/api/runs", {"id": secret, "project": "a/b", "command": [secret]})

    async def fail(*_: object, **__: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(tracker, "write", fail)
    monkeypatch.setattr(tracker, "read", fail)
    client.post(stream, {"files": {"output.log": {"offset": 0, "content": [secret]}}})
    client.put(url, secret.encode())
    assert "RuntimeError" in caplog.text
    assert secret not in caplog.text
    assert KEY not in caplog.text
    assert url.rpartition("/")[2] not in caplog.text
