"""How long the page takes to show what it is asked for, in a real Chromium.

    python -m benchmarks.page

Fills a state folder through the store, starts the server on it, and opens it in Debian's Chromium
(headless, so without a graphics card). Times run from the navigation to the frame after the last
chart was painted; the browser's cache is warm except where it says cold.
"""

from __future__ import annotations

import json
import math
import os
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright
from tests.page.chromium import require_chromium

from runyard.client.api import Api
from runyard.client.discover import start_server, stop_server
from runyard.client.http import Connection
from runyard.home import Home, prepare, read_discovery
from runyard.server.history.history import HISTORY, put_rows
from runyard.server.history.joining import join_batches
from runyard.server.people.accounts import new_key
from runyard.server.runs import runs
from runyard.server.tracker import Tracker

CHARTS, RUNS, STEPS, MANY, TIMES = 12, 100, 1_000, 10_000, 5
# A wheel, and a drag of the bar: 130 and 390 rows a second.
SCROLLS = (60, 180)
LIMITS = {
    "12 charts": 800.0,
    "one chart": 500.0,
    "frames": 50.0,
    "before charts": 100.0,
    "with charts": 200.0,
    "live": 2000.0,
}

_PAINTED = """
([charts, lines]) => {
  const plots = [...document.querySelectorAll('.plot')];
  const painted = plots.filter((plot) => Number(plot.dataset.lines) >= lines);
  const next = (done) => requestAnimationFrame(() => done(performance.now()));
  return painted.length >= charts && new Promise((done) => requestAnimationFrame(() => next(done)));
}
"""
# The least that a table of so many rows can be: a line of text for each row that is seen.
_PLAIN = """
<style>
  body { margin: 0; font: 13px sans-serif }
  .table { position: relative; overflow: auto; height: 960px; contain: strict; background: #fff }
  .row { position: absolute; left: 0; width: 100%; height: 28px; contain: strict }
</style>
<div class="table"><div id="rows" style="position: relative; height: 280000px"></div></div>
<script>
  const [table, rows] = [document.querySelector('.table'), document.getElementById('rows')];
  const drawn = new Map();
  const look = () => {
    const first = Math.max(0, Math.floor(table.scrollTop / 168) * 6 - 12);
    const last = Math.min(10000, first + 60);
    for (const [place, row] of drawn) {
      if (place < first || place >= last) { row.remove(); drawn.delete(place); }
    }
    for (let place = first; place < last; place++) {
      if (drawn.has(place)) continue;
      const row = document.createElement('div');
      row.className = 'row';
      row.style.top = place * 28 + 'px';
      row.textContent = 'quiet-cloud-' + place;
      drawn.set(place, row);
      rows.append(row);
    }
  };
  table.onscroll = look;
  look();
</script>
"""
_SCROLL = """
(pixels) => new Promise((done) => {
  const table = document.querySelector('.table');
  const gaps = [];
  let last = performance.now();
  const begin = last;
  const step = (now) => {
    gaps.push(now - last);
    last = now;
    table.scrollTop += pixels;
    if (now - begin < 3000) requestAnimationFrame(step);
    else {
      const frames = (gaps.length / (now - begin)) * 1000;
      done({frames, drawn: gaps.length, longest: Math.max(...gaps), at: table.scrollTop});
    }
  };
  requestAnimationFrame(step);
})
"""


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder) / "state")
        fill(home)
        start_server(home)
        try:
            return measure(home)
        finally:
            stop_server(home)


def fill(home: Home) -> None:
    """A project for charts, and one for the table."""
    prepare(home)
    tracker = Tracker(home)
    tracker.open(new_key())

    def add_curves(connection: sqlite3.Connection, number: int) -> None:
        new = {"id": f"c{number}", "project": "curves", "command": ["x"]}
        row = runs.create_launched(connection, new, entity="me", user=1, now=time.time())
        pace = random.uniform(1, 6)
        lines = [
            json.dumps(
                {
                    "_step": step,
                    "_runtime": step / 7,
                    "_timestamp": 1.7e9 + step / 7,
                    **{
                        f"m{metric}": math.exp(-pace * step / STEPS) + random.gauss(0, 0.03)
                        for metric in range(CHARTS)
                    },
                }
            )
            for step in range(STEPS if number else STEPS // 2)  # The first one goes on, live.
        ]
        put_rows(connection, row["key"], HISTORY, 0, lines)
        join_batches(connection, row["key"], HISTORY)

    def add_many(connection: sqlite3.Connection) -> None:
        for number in range(MANY):
            new = {"id": f"r{number}", "project": "many", "command": ["x"]}
            row = runs.create_launched(connection, new, entity="me", user=1, now=time.time())
            config = {
                name: {"value": random.random()} for name in ("lr", "decay", "dropout", "momentum")
            }
            summary = {"loss": random.random(), "accuracy": random.random(), "_step": number}
            connection.execute(
                "UPDATE runs SET config = ?, summary = ?, state = 'finished' WHERE key = ?",
                (json.dumps(config), json.dumps(summary), row["key"]),
            )

    for number in range(RUNS):
        tracker._database.write(lambda connection, it=number: add_curves(connection, it)).result()  # type: ignore[misc]
    tracker._database.write(add_many).result()
    tracker.close()
    print(
        f"filled {RUNS} runs of {STEPS} steps and {CHARTS} metrics, and {MANY} runs",
        file=sys.stderr,
    )


def measure(home: Home) -> int:
    discovery = read_discovery(home)
    assert discovery is not None
    api = Api(Connection(discovery.url, discovery.key))
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    held = True
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=require_chromium(), args=["--no-sandbox"]
        )
        # The first page that a person sees has no charts; each in a browser that has nothing yet.
        for name, path, shown in (
            ("before charts", "/", "main a"),
            ("with charts", "/me/curves?panel=charts", ".chart"),
        ):
            context = browser.new_context(viewport={"width": 1920, "height": 1080})
            context.set_default_timeout(120_000)
            page = context.new_page()
            url = f"{api.url}{path}#code={api.login_code()['code']}"
            size = first_load(context, page, url, shown)
            held &= tell(name, size / 1e3, "kB compressed", smaller=True)
        charts = f"{api.url}/me/curves?panel=charts"
        cold = painted(page, charts, CHARTS)
        print(f"{'12 charts, first time':24} {cold:8.0f} ms")
        held &= tell("12 charts", repeated(page, charts, CHARTS), "ms", smaller=True)
        held &= tell("one chart", repeated(page, f"{charts}&metrics=m3", 1), "ms", smaller=True)
        held &= tell("live", live(page, api, charts), "ms from arrival to paint", smaller=True)
        held &= scrolled(browser, context, page, f"{api.url}/me/many?panel=runs")
        browser.close()
    return 0 if held else 1


def scrolled(browser: Browser, context: BrowserContext, page: Page, url: str) -> bool:
    """The table beside the plainest one there can be, in turns: a busy machine holds up both."""
    page.goto(url)
    page.wait_for_selector(".run-link")
    page.wait_for_timeout(1500)  # Its columns come after its names.
    plain = context.new_page()
    plain.set_content(_PLAIN)
    session = browser.new_browser_cdp_session()

    def cpu() -> float:
        """Seconds that all processes of the browser have used."""
        processes = session.send("SystemInfo.getProcessInfo")["processInfo"]
        return float(sum(process["cpuTime"] for process in processes))

    def scroll(table: Page, pixels: int) -> tuple[float, float, float]:
        table.bring_to_front()
        table.evaluate("document.querySelector('.table').scrollTop = 0")
        table.wait_for_timeout(500)
        before = cpu()
        found: dict[str, Any] = table.evaluate(_SCROLL, pixels)
        assert found["at"] > 1_000, "it did not scroll"
        return found["frames"], found["longest"], (cpu() - before) / found["drawn"] * 1e3

    held = True
    for pixels in SCROLLS:
        turns = [(scroll(plain, pixels), scroll(page, pixels)) for _ in range(TIMES)]
        floor, ours = (sorted(turn[side] for turn in turns)[TIMES // 2] for side in (0, 1))
        held &= tell(
            "frames",
            ours[0],
            f"a second at {pixels} pixels a frame; longest {ours[1]:.0f} ms, "
            f"{ours[2]:.1f} ms of CPU each",
            smaller=False,
        )
        print(
            f"{'  a plain table':24} {floor[0]:8.0f} a second, {floor[2]:.1f} ms of CPU each: "
            f"ours has {ours[0] / floor[0]:.0%} of its frames"
        )
    plain.close()
    return held


def tell(name: str, value: float, unit: str, *, smaller: bool) -> bool:
    limit = LIMITS[name]
    print(f"{name:24} {value:8.0f} {unit}  ({'at most' if smaller else 'at least'} {limit:g})")
    return value <= limit if smaller else value >= limit


def painted(page: Page, url: str, charts: int) -> float:
    page.goto(url, wait_until="commit")
    found = page.wait_for_function(_PAINTED, arg=[charts, RUNS], polling="raf")
    took: float = found.json_value()
    return took


def repeated(page: Page, url: str, charts: int) -> float:
    return statistics.median(painted(page, url, charts) for _ in range(TIMES))


def first_load(context: BrowserContext, page: Page, url: str, shown: str) -> int:
    """Bytes of the document and everything it is made of, as they came over the wire."""
    session = context.new_cdp_session(page)
    session.send("Network.enable")
    assets: dict[str, int] = {}
    sizes: dict[str, int] = {}

    def began(event: dict[str, Any]) -> None:
        if "/api/" not in event["request"]["url"]:
            assets[event["requestId"]] = 1

    session.on("Network.requestWillBeSent", began)
    session.on(
        "Network.loadingFinished",
        lambda event: sizes.__setitem__(event["requestId"], event["encodedDataLength"]),
    )
    page.goto(url)
    page.wait_for_selector(shown)
    page.wait_for_timeout(1000)
    session.detach()
    return int(sum(size for request, size in sizes.items() if request in assets))


def live(page: Page, api: Api, url: str) -> float:
    """A row is sent as a client would; when has the chart one more point?"""
    painted(page, url, CHARTS)
    took = []
    for number in range(TIMES):
        before = page.evaluate("() => Number(document.querySelector('.plot').dataset.points)")
        line = json.dumps({"_step": STEPS // 2 + number, **{f"m{m}": 0.1 for m in range(CHARTS)}})
        begin = time.perf_counter()
        api._connection.post(
            "/files/me/curves/c0/file_stream",
            {"files": {"wandb-history.jsonl": {"offset": STEPS // 2 + number, "content": [line]}}},
        )
        page.wait_for_function(
            "before => Number(document.querySelector('.plot').dataset.points) !== before",
            arg=before,
            polling="raf",
        )
        took.append((time.perf_counter() - begin) * 1e3)
        page.wait_for_timeout(1200)
    return max(took)


if __name__ == "__main__":
    sys.exit(main())
