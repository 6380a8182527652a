"""Many windows of one browser: all live, by one stream."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from runyard.home import Home
from tests.page.conftest import PATIENCE, login_link
from tests.page.proxy import Streams, proxy
from tests.page.yard import Yard, open_yard

pytestmark = pytest.mark.live

WINDOWS = 10
# RUNYARD_LONG_WINDOWS=1: they stay open for ten minutes.
ROUNDS, PAUSE = (40, 15.0) if os.environ.get("RUNYARD_LONG_WINDOWS") else (1, 0.0)


@pytest.fixture(scope="module")
def yard(module_home: Home) -> Yard:
    return open_yard(module_home)


def make_run(yard: Yard, number: int) -> Any:
    new = {"id": f"r{number}", "project": f"p{number}", "command": ["x"], "name": f"run-{number}"}
    return yard.connection.post("/api/runs", new)


def log_metric(yard: Yard, run: Any, name: str) -> None:
    yard.log(run, [{name: 1.0}, {name: 2.0}], start=int(time.time()))


def sees(page: Page, metric: str, points: int = 2) -> None:
    chart = page.get_by_role("region", name=f"Chart of {metric}", exact=True)
    expect(chart.locator(".plot")).to_have_attribute("data-lines", "1")
    expect(chart.locator(".plot")).to_have_attribute("data-points", str(points))


def settled(streams: Streams, count: int) -> None:
    end = time.monotonic() + PATIENCE / 1000
    while streams.open_now != count and time.monotonic() < end:
        time.sleep(0.1)
    assert streams.open_now == count


def logged_in(browser: Browser, yard: Yard, base: str) -> Page:
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto(login_link(yard.home, base=base))
    page.locator("a.skip").wait_for(state="attached")
    return page


def open_windows(context: BrowserContext, base: str, yard: Yard) -> list[Page]:
    pages = []
    for number in range(WINDOWS):
        page = context.new_page()
        # A project's page, a run's page, all projects.
        path = [f"p{number}", f"p{number}/runs/r{number}"][number % 2]
        page.goto(f"{base}/{yard.me()}/{path}")
        pages.append(page)
    return pages


def test_ten_windows_are_live_by_one_stream(yard: Yard, browser: Browser) -> None:
    streams = Streams()
    streams.passes.set()
    runs = [make_run(yard, number) for number in range(WINDOWS)]
    with proxy(yard.url, "", streams) as base:
        first = logged_in(browser, yard, base)
        context = first.context
        pages = open_windows(context, base, yard)
        for page, number in zip(pages, range(WINDOWS), strict=True):
            expect(page.get_by_text(f"run-{number}").first).to_be_visible()
        settled(streams, 1)
        for lap in range(ROUNDS):
            for page, run in zip(pages, runs, strict=True):
                log_metric(yard, run, "first")
                sees(page, "first", points=2 * (lap + 1))
            settled(streams, 1)
            time.sleep(PAUSE)
        # Windows come and go; the others stay live.
        first.close()
        for page in pages[:4]:
            page.close()
        for page, run in zip(pages[4:], runs[4:], strict=True):
            log_metric(yard, run, "second")
            sees(page, "second")
        settled(streams, 1)
        context.close()
        settled(streams, 0)


def test_after_a_silence_the_stream_is_tried_again(yard: Yard, browser: Browser) -> None:
    streams = Streams()
    run = make_run(yard, WINDOWS)
    with proxy(yard.url, "", streams) as base:
        page = logged_in(browser, yard, base)
        page.goto(f"{base}/{yard.me()}/p{WINDOWS}")
        expect(page.get_by_text("Nothing was logged yet")).to_be_visible()
        log_metric(yard, run, "first")
        sees(page, "first")
        assert streams.opened == 0
        streams.passes.set()
        settled(streams, 1)
        log_metric(yard, run, "second")
        sees(page, "second")
        page.context.close()
