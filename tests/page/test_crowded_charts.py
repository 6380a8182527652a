"""Charts of many runs: how they are asked for, and what is drawn of lines with many points."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from runyard.home import Home
from tests.page.conftest import OpenPage, login_link
from tests.page.yard import Yard, open_yard

pytestmark = pytest.mark.live

RUNS, STEPS, METRICS = 30, 1000, 21
SPIKE, SPIKE_AT = 50.0, 700
# The most strokes that a line has had, on any canvas.
_COUNT_STROKES = """
    const canvas = CanvasRenderingContext2D.prototype;
    const { beginPath, lineTo, stroke } = canvas;
    let strokes = 0;
    canvas.beginPath = function () { strokes = 0; beginPath.call(this); };
    canvas.lineTo = function (x, y) { strokes++; lineTo.call(this, x, y); };
    canvas.stroke = function () {
        const { dataset } = document.documentElement;
        dataset.strokes = String(Math.max(strokes, Number(dataset.strokes ?? 0)));
        stroke.call(this);
    };
"""
# Which pixels of a row are colourful: grids are grey.
_COLOURED = """(canvas, share) => {
    const { width, height } = canvas;
    const row = canvas.getContext("2d").getImageData(0, Math.round(height * share), width, 1).data;
    const found = [];
    for (let at = 0; at < width; at++) {
        const colours = row.slice(4 * at, 4 * at + 3);
        const strength = Math.max(...colours) - Math.min(...colours);
        if (row[4 * at + 3] > 60 && strength > 60) found.push(at);
    }
    return found;
}"""


@pytest.fixture(scope="module")
def yard(module_home: Home) -> Yard:
    """Runs with one long metric, and many short ones."""
    yard = open_yard(module_home)
    for number in range(RUNS):
        place = {"entity": yard.me(), "project": "crowd", "id": f"r{number}"}
        yard.connection.post("/api/runs", {**place, "name": f"r{number}", "command": ["true"]})
        rows: list[dict[str, Any]] = [{"long": (step * 7 + number) % 10} for step in range(STEPS)]
        if number == 0:
            rows[SPIKE_AT]["long"] = SPIKE
        for row in rows[:2]:
            row |= {f"m{metric:02}": 1.0 for metric in range(METRICS)}
        yard.log(place, rows)
    return yard


def _plot(page: Page, metric: str) -> Locator:
    chart = page.get_by_role("region", name=f"Chart of {metric}", exact=True)
    return chart.locator(".plot")


def test_a_dense_line_has_no_more_strokes_than_there_are_columns_of_pixels(
    yard: Yard, open_page: OpenPage
) -> None:
    page = open_page(login_link(yard.home, ""))
    page.add_init_script(_COUNT_STROKES)
    page.goto(f"{yard.url}/{yard.me()}/crowd?metrics=long")
    plot = _plot(page, "long")
    expect(plot).to_have_attribute("data-lines", str(RUNS))
    expect(plot).to_have_attribute("data-points", str(RUNS * STEPS))
    canvas = plot.locator("canvas").first
    width = canvas.evaluate("it => it.width")
    strokes = int(page.locator("html").get_attribute("data-strokes") or 0)
    assert 0 < strokes <= width < STEPS
    # The one spike of the one run is there, where it belongs.
    coloured = canvas.evaluate(_COLOURED, 0.3)
    assert 1 <= len(coloured) <= 3
    assert coloured[0] / width == pytest.approx(SPIKE_AT / STEPS, abs=0.08)


def test_two_questions_for_curves_are_under_way_at_once(yard: Yard, open_page: OpenPage) -> None:
    """The server reads the second one while the page draws the first."""
    page = open_page(login_link(yard.home, ""), height=4000)
    held: list[Route] = []
    page.route("**/api/curves", lambda route: held.append(route))
    page.goto(f"{yard.url}/{yard.me()}/crowd?metrics=m&panel=charts")
    expect(_plot(page, "m20")).to_be_visible()
    for _ in range(20):
        if len(held) == 2:
            break
        page.wait_for_timeout(100)
    page.wait_for_timeout(300)
    assert len(held) == 2
    held[0].continue_()
    expect(_plot(page, "m00")).to_have_attribute("data-lines", str(RUNS))
    for _ in range(20):
        if len(held) == 3:
            break
        page.wait_for_timeout(100)
    assert len(held) == 3
    for route in held[1:]:
        route.continue_()
    expect(_plot(page, "m20")).to_have_attribute("data-lines", str(RUNS))
