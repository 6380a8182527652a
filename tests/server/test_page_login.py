"""How a browser comes in, what its cookie may do, and what the page's addresses answer."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from runyard.server.http.cookies import cookie_path
from runyard.server.page import login, static_files
from runyard.server.people import sessions
from runyard.server.tracker import Tracker
from tests.server.asgi import KEY_ID, Client
from tests.server.browsers import Visitor, log_in, new_code
from tests.server.conftest import Upsert
from tests.server.persons import Person

BROWSER = {"accept": "text/html,application/xhtml+xml", "accept-encoding": "gzip, deflate, br"}


def test_a_code_is_worth_one_login(client: Client, upsert: Upsert) -> None:
    upsert(name="run1")
    code = new_code(client)
    first = log_in(client, code, path="/user/ada/proxy/8000/", secure=True)
    assert (first.status, first.json()["name"]) == (200, "ada")
    _, *words = first.headers["set-cookie"].split("; ")
    assert words[0] == "Path=/user/ada/proxy/8000/"
    assert {"HttpOnly", "SameSite=Strict", "Secure"} < set(words)
    assert Visitor(client).get("/api/runs").json()[0]["id"] == "run1"

    again = log_in(client, code)
    assert again.status == 403
    assert "runyard ui" in again.json()["error"]
    assert "set-cookie" not in again.headers


def test_a_code_is_worth_nothing_later(tracker: Tracker) -> None:
    code = tracker.accounts.codes.make(KEY_ID, now=1000.0)
    assert tracker.accounts.codes.take(code, now=1000.0 + sessions.CODE_SECONDS + 1) is None
    assert tracker.accounts.codes.take(code, now=1000.0) is None
    assert tracker.accounts.codes.take("guess", now=1000.0) is None


def test_codes_that_nobody_uses_do_not_fill_the_memory(tracker: Tracker) -> None:
    made = [tracker.accounts.codes.make(KEY_ID, now=float(number)) for number in range(1100)]
    assert tracker.accounts.codes.take(made[0], now=1100.0) is None
    assert tracker.accounts.codes.take(made[-1], now=1100.0) == KEY_ID


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"sec-fetch-site": "same-origin"},
        {"x-runyard": "page", "sec-fetch-site": "same-site"},
        {"x-runyard": "page", "sec-fetch-site": "cross-site"},
        {"x-runyard": "page", "origin": "http://127.0.0.1:9999"},
        {"x-runyard": "page", "origin": "null"},
    ],
)
def test_another_page_logs_nobody_in(client: Client, headers: dict[str, str]) -> None:
    """Also one from another port of the same machine, which is the same site to a browser."""
    body = json.dumps({"code": new_code(client)}).encode()
    assert client.request("POST", "/api/login", [body], key=None, headers=headers).status == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"x-runyard": "page", "sec-fetch-site": "same-origin", "origin": "https://hub.example"},
        {"x-runyard": "page", "origin": "http://yard.example:8123"},
        {"x-runyard": "page", "origin": "https://hub.example", "x-forwarded-host": "hub.example"},
    ],
)
def test_our_own_page_logs_in_behind_a_proxy_too(client: Client, headers: dict[str, str]) -> None:
    body = json.dumps({"code": new_code(client)}).encode()
    assert client.request("POST", "/api/login", [body], key=None, headers=headers).status == 200


def test_a_key_logs_in_as_well_as_a_code(
    bob: Person, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert log_in(client, bob.key).json()["name"] == "bob"
    monkeypatch.setattr(login, "REFUSAL_SECONDS", 0.0)
    for wrong in (bob.key[:-1], "x" * 40, "", "\ud800", 1, None, ["a"]):
        assert log_in(client, wrong).status == 403, wrong  # type: ignore[arg-type]
    assert log_in(client, bob.key * 200).status == 413


def test_a_key_for_runs_logs_nobody_in(client: Client) -> None:
    """It is in the environment of programs, and opens nothing that a page shows beside runs."""
    key = client.post("/api/keys", {"kind": "shell"}).json()["key"]
    refused = log_in(client, key)
    assert (refused.status, "runyard ui" in refused.json()["error"]) == (403, True)


def test_a_wrong_code_is_answered_late(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(login.asyncio, "sleep", wait)  # type: ignore[attr-defined]
    log_in(client, "guess")
    assert login.REFUSAL_SECONDS in waits


def test_a_page_that_is_not_logged_in_gets_no_password_dialog(client: Client) -> None:
    for headers in ({"x-runyard": "page"}, {"sec-fetch-site": "same-origin"}):
        answer = client.request("GET", "/api/runs", key=None, headers=headers)
        assert answer.status == 401
        assert "www-authenticate" not in answer.headers
        assert "runyard ui" in answer.json()["error"]


def test_logging_out_takes_the_cookie_back(client: Client) -> None:
    answer = Visitor(client).ask("POST", "/api/logout")
    assert "Max-Age=0" in answer.headers["set-cookie"]


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("/", "/"),
        ("/node/n1/8000/", "/node/n1/8000/"),
        ("/a b;Domain=evil", "/a%20b%3BDomain=evil"),
        ("evil", "/"),
        (None, "/"),
        ("/\r\nX: y", "/%0D%0AX:%20y"),
        ("/" * 2000, "/"),
    ],
)
def test_a_cookies_path_is_a_path(given: object, path: str) -> None:
    assert cookie_path(given) == path


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page as the build leaves it."""
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text('<base href="./" /><title>runyard</title>')
    (tmp_path / "assets" / "app-1a2b.js").write_text("run()")
    (tmp_path / "assets" / "app-1a2b.js.gz").write_bytes(gzip.compress(b"run()"))
    monkeypatch.setattr(static_files, "BUILT", static_files.BuiltPage(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("path", "root"),
    [
        ("/", "./"),
        ("/jobs", "./"),
        ("/settings", "./"),
        ("/ada/birds", "../"),
        ("/ada/birds/", "../../"),
        ("/ada/birds/runs/run1", "../../../"),
        ("/ada/birds/runs/a%2Fb", "../../../"),
        ("/ada/birds/runs/run1/logs", "../../../../"),
    ],
)
def test_every_address_knows_the_way_to_its_root(
    client: Client, built: Path, path: str, root: str
) -> None:
    answer = client.request("GET", path, key=None, headers=BROWSER)
    assert answer.status == 200
    assert f'<base href="{root}"' in answer.text
    assert answer.headers["cache-control"] == "no-cache"
    assert "frame-ancestors 'self'" in answer.headers["content-security-policy"]


def test_assets_come_packed_and_are_kept_for_a_year(client: Client, built: Path) -> None:
    packed = client.request("GET", "/assets/app-1a2b.js", key=None, headers=BROWSER)
    assert gzip.decompress(packed.body) == b"run()"
    assert packed.headers["content-encoding"] == "gzip"
    assert "immutable" in packed.headers["cache-control"]
    plain = client.request("GET", "/assets/app-1a2b.js", key=None)
    assert (plain.body, "content-encoding" in plain.headers) == (b"run()", False)
    assert "<base" not in client.request("GET", "/assets/..%2Findex.html", key=None).text


def test_without_a_built_page_the_server_says_why(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(static_files, "BUILT", static_files.BuiltPage(tmp_path))
    (tmp_path / "not-built.txt").write_text("npm could not reach <its registry>")
    answer = client.request("GET", "/ada/birds/runs/r1", key=None, headers=BROWSER)
    assert answer.status == 503
    assert "npm could not reach &lt;its registry&gt;" in answer.text
    assert "runyard show r1" in answer.text
    assert client.get("/api/runs").status == 200
