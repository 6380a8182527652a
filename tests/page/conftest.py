"""A real Chromium, shared by the tests of a file, and pages of it that see our server alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Request, expect, sync_playwright

from runyard.client.api import Api
from runyard.client.discover import ensure_server
from runyard.home import Home
from tests.page.chromium import launch_chromium, require_chromium

OpenPage = Callable[..., Page]
# A busy machine paints late; nothing here waits longer than it must.
PATIENCE = 60_000
# What needs a graphics card is drawn by the processor here: half a minute of it for a page of
# charts, and other tests want it too.
DRAWING = 300_000
expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for a file: while Playwright is up, its event loop runs, and no other can in here."""
    require_chromium()
    with sync_playwright() as playwright:
        chromium = launch_chromium(playwright)
        yield chromium
        chromium.close()


def login_link(home: Home, path: str = "", base: str | None = None) -> str:
    """What `runyard ui` prints."""
    api: Api = ensure_server(home).api
    return f"{base or api.url}/{path}#code={api.login_code()['code']}"


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """Opens an address in a browser of its own. Errors of the page fail the test, and so does a
    request to anything but the server that it came from."""
    contexts: list[BrowserContext] = []
    trouble: list[str] = []

    def open_at(url: str, *, width: int = 1440, height: int = 900, **options: Any) -> Page:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        origin = "/".join(url.split("/")[:3])

        def is_ours(request: Request) -> None:
            if not request.url.startswith((origin, "data:", "blob:")):
                trouble.append(f"asked for {request.url}")

        context.on("request", is_ours)
        # And what is not ours would not get an answer.
        context.route(
            lambda asked: not asked.startswith((origin, "data:", "blob:")),
            lambda route: route.abort(),
        )
        page = context.new_page()
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.goto(url)
        # The page sends the code of its address after it has loaded. A test that went on to another
        # address before the answer would take the cookie away with it.
        if "#code=" in url:
            page.locator("a.skip, input[name=code]").first.wait_for(state="attached")
        return page

    yield open_at
    for context in contexts:
        context.close()
    assert trouble == []
