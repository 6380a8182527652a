"""Keys and sessions in a real browser: what its cookie is worth elsewhere, and how both end."""

from __future__ import annotations

import contextlib
import http.client
import re
import sqlite3
import threading
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from runyard.client.api import Api
from runyard.client.discover import ensure_server
from runyard.client.http import Connection
from runyard.home import Home
from tests.conftest import end_server
from tests.page.accessibility import serious, wide
from tests.page.conftest import OpenPage, login_link
from tests.page.yard import SEARCH, open_yard

pytestmark = pytest.mark.live
PHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 "
    "(KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1"
)


@pytest.fixture(scope="module")
def yard(module_home: Home) -> Home:
    open_yard(module_home).sweep(SEARCH)
    return module_home


@pytest.fixture
def api(yard: Home) -> Api:
    return ensure_server(yard).api


@contextlib.contextmanager
def another_port() -> Iterator[tuple[str, list[str]]]:
    """Another user's program on the same machine, and the cookies that browsers bring there."""
    cookies: list[str] = []

    class Thief(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            cookies.append(self.headers.get("Cookie", ""))
            body = b"<title>cat pictures</title>"
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Thief)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", cookies
    finally:
        server.shutdown()
        server.server_close()


def test_the_cookie_that_another_port_gets_is_worth_nothing(
    yard: Home, api: Api, browser: Browser
) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(login_link(yard))
    expect(page.locator(".bar")).to_be_visible()
    ours = urllib.parse.urlsplit(api.url)
    assert ours.hostname == "127.0.0.1"
    with another_port() as (theirs, cookies):
        lured = context.new_page()
        lured.goto(f"{theirs}/cats")
        stored = lured.evaluate("JSON.stringify({...localStorage})")
    context.close()
    stolen = next(cookie for cookie in cookies if "runyard-" in cookie)
    assert stored == "{}", "what the page keeps is not there on another port"

    def answered(method: str, path: str, **headers: str) -> int:
        connection = http.client.HTTPConnection(ours.hostname or "", ours.port, timeout=60)
        sent = {"Cookie": stolen, "X-Runyard": "page", "Sec-Fetch-Site": "same-origin", **headers}
        connection.request(method, path, "{}" if method != "GET" else None, sent)
        status = connection.getresponse().status
        connection.close()
        return status

    for method, path in (
        ("GET", "/api/me"),
        ("GET", "/api/runs"),
        ("POST", "/api/keys"),
        ("POST", "/api/login/codes"),
        ("POST", "/graphql"),
        ("GET", "/files/a/b/c/d"),
    ):
        assert answered(method, path) == 401, path
    assert answered("GET", "/api/live?projects=1", Accept="text/event-stream") == 401


def own_session(page: Page) -> None:
    expect(page.get_by_role("region", name="Sessions").get_by_text("this browser")).to_have_count(1)


def open_settings(page: Page) -> None:
    page.get_by_role("button", name=re.compile("Logged in as")).click()
    page.get_by_role("menuitem", name="Keys and sessions").click()
    own_session(page)


def test_sessions_are_shown_and_others_ended(yard: Home, api: Api, open_page: OpenPage) -> None:
    page = open_page(login_link(yard))
    phone = open_page(login_link(yard), user_agent=PHONE)
    open_settings(page)
    listed = page.get_by_role("region", name="Sessions")
    expect(listed).to_contain_text("Safari on iPhone")
    expect(listed).to_contain_text("127.0.0.1")
    page.get_by_role("button", name="End the session in Safari on iPhone").click()
    page.get_by_role("dialog").get_by_role("button", name="End", exact=True).click()
    expect(listed.get_by_text("Safari on iPhone")).to_have_count(0)
    phone.reload()
    expect(phone.get_by_text("This page shows nothing until you log in")).to_be_visible()

    other = open_page(login_link(yard))
    expect(other.locator(".bar")).to_be_visible()
    page.reload()
    page.get_by_role("button", name="End all others of your sessions").click()
    page.get_by_role("dialog").get_by_role("button", name="End all others").click()
    # The page of the other browser hears of it by itself: its stream of news is closed.
    expect(other.get_by_text("This page shows nothing until you log in")).to_be_visible()
    own_session(page)
    assert len(api.people.sessions()) == 1


def test_administration_asks_for_a_code_in_a_page_that_was_opened_long_ago(
    yard: Home, open_page: OpenPage
) -> None:
    page = open_page(login_link(yard))
    open_settings(page)
    port = ensure_server(yard).api.url
    ensure_server(yard).api.people.add_key("laptop")
    end_server(yard)
    with contextlib.closing(sqlite3.connect(yard.database)) as database, database:
        database.execute("UPDATE page_sessions SET confirmed_at = confirmed_at - 3600")
    api = ensure_server(yard).api
    assert api.url == port

    page.reload()
    own_session(page)
    page.get_by_role("button", name="Revoke the key laptop").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    asked = page.get_by_role("dialog", name="Confirm that it is you")
    expect(asked).to_contain_text("runyard ui --code")
    assert serious(page) == []
    asked.get_by_label("Code").fill("wrong")
    asked.get_by_role("button", name="Confirm").click()
    expect(asked.get_by_role("alert")).to_contain_text("used before")
    assert "laptop" in {key["label"] for key in api.people.list_keys()}
    asked.get_by_label("Code").fill(api.login_code()["code"])
    asked.get_by_role("button", name="Confirm").click()
    expect(page.get_by_text("The key is revoked.")).to_be_visible()
    expect(page.get_by_role("button", name="Revoke the key laptop")).to_have_count(0)
    assert "laptop" not in {key["label"] for key in api.people.list_keys()}


def test_a_key_logs_in_and_logging_out_ends_the_session(
    yard: Home, api: Api, open_page: OpenPage
) -> None:
    key = api.people.add_user("bob")["key"]
    page = open_page(api.url)
    page.get_by_label("Link, code or key").fill(key)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("button", name="Logged in as bob").click()
    (session,) = [each for each in api.people.sessions() if each["user"] == "bob"]
    page.get_by_role("menuitem", name="Log out of this browser").click()
    expect(page.get_by_text("This page shows nothing until you log in")).to_be_visible()
    assert session["id"] not in {each["id"] for each in api.people.sessions()}
    assert page.evaluate("localStorage.length") == 0


def test_a_link_of_another_user_asks_before_it_ends_a_session(
    yard: Home, api: Api, open_page: OpenPage
) -> None:
    key = api.people.add_user("mallory")["key"]
    with contextlib.closing(Api(Connection(api.url, key))) as theirs:
        link = f"{api.url}/#code={theirs.login_code()['code']}"
    me = api.people.me()["name"]
    page = open_page(login_link(yard))
    mine = page.get_by_role("button", name=f"Logged in as {me}")
    expect(mine).to_be_visible()
    half = page.evaluate("JSON.stringify(localStorage)")

    def follow(link: str) -> Locator:
        page.goto("about:blank")
        page.goto(link)
        return page.get_by_role("dialog", name="Log in as another user?")

    asked = follow(link)
    expect(asked).to_contain_text(f"You are logged in as {me}. This link logs you in as mallory.")
    assert serious(page) == []
    asked.get_by_role("button", name="Stay").click()
    expect(mine).to_be_visible()
    assert page.url == f"{api.url}/"
    assert page.evaluate("JSON.stringify(localStorage)") == half
    assert "mallory" not in {session["user"] for session in api.people.sessions()}
    # A link of one's own asks nothing.
    follow(login_link(yard))
    expect(mine).to_be_visible()
    page.goto(link)
    asked.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("button", name="Logged in as mallory")).to_be_visible()
    assert [session["user"] for session in api.people.sessions()].count("mallory") == 1


def test_a_page_that_is_open_keeps_its_session(yard: Home, api: Api, open_page: OpenPage) -> None:
    page = open_page(api.url)
    page.clock.install()
    page.goto(login_link(yard))
    expect(page.locator(".bar")).to_be_visible()
    with page.expect_request("**/api/me"):
        page.clock.fast_forward("11:00")


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 390)])
def test_settings_can_be_used_by_everybody_and_on_a_phone(
    yard: Home, api: Api, open_page: OpenPage, scheme: str, width: int
) -> None:
    page = open_page(login_link(yard, "settings"), width=width, height=844, color_scheme=scheme)
    own_session(page)
    expect(page.get_by_text("state folder", exact=True)).to_be_visible()
    assert serious(page) == []
    assert wide(page) == 0
