"""What the page says is what was logged: to the last digit, with the spike, in the window."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import FloatRect, Locator, Page, expect

from runyard.home import Home
from tests.page.conftest import OpenPage, login_link
from tests.page.yard import Yard, open_yard

pytestmark = pytest.mark.live

RATES = (0.00012345, 0.00012346, 3.7267568007158243)
NOTES = "# Why\n\nThe **small** model, see `train.py`:\n\n- first\n- second\n\n<b>no HTML</b>"
SPIKE_AT = 1307
ROWS = 20_000
SWEEP = {
    "name": "depth of birds",
    "method": "grid",
    "program": "train.py",
    "metric": {"name": "val_loss", "goal": "minimize"},
    "parameters": {"depth": {"values": [1, 2]}},
}
_UPSERT = "mutation($input: UpsertBucketInput!) { upsertBucket(input: $input) { bucket { id } } }"
# How colourful a row of pixels is at most, over the canvas of a chart: grids and bands are pale.
_STRONGEST = """canvas => {
    const { width, height } = canvas;
    const pixels = canvas.getContext("2d").getImageData(0, Math.round(height / 3), width, 1).data;
    let most = 0;
    for (let at = 0; at < pixels.length; at += 4) {
        const colours = [pixels[at], pixels[at + 1], pixels[at + 2]];
        const strength = Math.max(...colours) - Math.min(...colours);
        // What is half transparent is half as strong.
        most = Math.max(most, (strength * pixels[at + 3]) / 255);
    }
    return most;
}"""


@pytest.fixture(scope="module")
def yard(module_home: Home) -> Yard:
    """Runs whose rates differ late, one with a spike, and two of a sweep."""
    yard = open_yard(module_home)
    me = yard.me()
    for number, rate in enumerate(RATES):
        new: dict[str, Any] = {
            "entityName": me,
            "modelName": "exact",
            "name": f"r{number}",
            "displayName": f"run-{number}",
            "config": json.dumps({"lr": {"value": rate}, "seed": {"value": 12345 + number}}),
            **({"notes": NOTES} if number == 0 else {}),
        }
        answer = yard.connection.post("/graphql", {"query": _UPSERT, "variables": {"input": new}})
        assert "errors" not in answer
        rows = [{"loss": 1 / (step + 1), "val/acc": step / 10} for step in range(6)]
        place = {"entity": me, "project": "exact", "id": f"r{number}"}
        yard.log(place, rows)
        yard.summarise(place, {"loss": 1 / 6})
    new = {"entityName": me, "modelName": "spiky", "name": "s0", "displayName": "spiky"}
    yard.connection.post("/graphql", {"query": _UPSERT, "variables": {"input": new}})
    rows = [{"loss": 470.0 if step == SPIKE_AT else 1.0 + step % 7 / 50} for step in range(ROWS)]
    for start in range(0, ROWS, 5000):
        place = {"entity": me, "project": "spiky", "id": "s0"}
        yard.log(place, rows[start : start + 5000], start)
    sweep = yard.sweep(SWEEP, "exact")
    yard.work(sweep, 2, lambda values: {"val_loss": float(values["depth"])})
    return yard


@pytest.fixture
def page(yard: Yard, open_page: OpenPage) -> Page:
    page = open_page(login_link(yard.home, f"{yard.me()}/exact"))
    expect(page.locator(".run-link")).to_have_count(5)
    return page


def _chart(page: Page, metric: str) -> Locator:
    return page.get_by_role("region", name=f"Chart of {metric}", exact=True)


def _box(it: Locator) -> FloatRect:
    box = it.bounding_box()
    assert box is not None
    return box


def test_settings_are_shown_to_the_last_digit(page: Page, yard: Yard) -> None:
    table = page.get_by_role("region", name="Runs", exact=True)
    for rate in RATES:
        expect(table.get_by_text(str(rate), exact=True)).to_be_attached()
    expect(table.get_by_text("12345", exact=True)).to_be_attached()
    page.goto(f"{yard.url}/{yard.me()}/exact/runs/r2/overview")
    expect(page.get_by_role("region", name="Config")).to_contain_text("3.7267568007158243")
    expect(page.get_by_role("region", name="Summary")).to_contain_text("0.16666666666666666")


def test_notes_are_markdown_that_can_be_edited(page: Page, yard: Yard) -> None:
    page.goto(f"{yard.url}/{yard.me()}/exact/runs/r0/overview")
    notes = page.get_by_role("region", name="Notes")
    expect(notes.get_by_role("heading", name="Why")).to_be_visible()
    expect(notes.locator("strong")).to_have_text("small")
    expect(notes.get_by_role("listitem")).to_have_text(["first", "second"])
    # As in a report: large headings, and code on a ground of its own.
    expect(notes.get_by_role("heading", name="Why")).to_have_css("font-size", "17px")
    expect(notes.locator("code")).to_have_css("padding-left", "5px")
    expect(notes).to_contain_text("<b>no HTML</b>")
    notes.get_by_role("button", name="Edit the notes").click()
    notes.get_by_role("textbox").fill("*Done.*")
    notes.get_by_role("button", name="Save").click()
    expect(notes.locator("em")).to_have_text("Done.")
    assert yard.api.run("exact/r0")["notes"] == "*Done.*"


def test_a_sweep_is_found_by_its_name(page: Page) -> None:
    search = page.get_by_label("Search and filter runs")
    search.fill('sweep = "depth of birds"')
    expect(page.locator(".run-link")).to_have_count(2)
    search.fill('sweep != "depth of birds"')
    expect(page.locator(".run-link")).to_have_count(3)


def test_an_address_names_the_few_that_are_drawn(page: Page) -> None:
    plot = _chart(page, "loss").locator(".plot")
    expect(plot).to_have_attribute("data-lines", "3")
    page.get_by_role("checkbox", name="Select run-1", exact=True).check()
    page.get_by_role("button", name="Draw only these").click()
    expect(plot).to_have_attribute("data-lines", "1")
    assert re.search(r"[?&]only=\d+($|&)", page.url), page.url
    assert "hide=" not in page.url
    page.get_by_role("button", name="Draw run-2", exact=True).click()
    expect(plot).to_have_attribute("data-lines", "2")
    for name in ("run-1", "run-2"):
        page.get_by_role("button", name=f"Do not draw {name}", exact=True).click()
    expect(plot).to_have_attribute("data-lines", "0")
    page.get_by_role("button", name="show 5 hidden").click()
    expect(plot).to_have_attribute("data-lines", "3")


@pytest.mark.parametrize("width", [1440, 390])
def test_values_under_the_pointer_are_whole_wherever_it_is(
    yard: Yard, open_page: OpenPage, width: int
) -> None:
    page = open_page(login_link(yard.home, f"{yard.me()}/exact?panel=charts"), width=width)
    charts = page.locator(".chart .u-over")
    expect(charts).to_have_count(3)
    expect(_chart(page, "loss").locator(".plot")).to_have_attribute("data-lines", "3")
    for turn in range(3):
        over = charts.nth(turn)
        over.scroll_into_view_if_needed()
        box = _box(over)
        for share in (0.02, 0.5, 0.98):
            over.hover(position={"x": box["width"] * share, "y": box["height"] / 2})
            tip = page.locator(".tip")
            expect(tip).to_be_in_viewport(ratio=1)
            row = _box(tip.locator(".tip-row").first)
            inside = _box(tip)
            assert row["x"] + row["width"] <= inside["x"] + inside["width"] + 1
            # No pane around the chart cuts it: it is placed in the window.
            assert tip.evaluate("it => getComputedStyle(it).position") == "fixed"


@pytest.mark.parametrize("tab", ["charts", "versus"])
def test_the_chosen_tab_of_a_run_is_in_sight_on_a_phone(
    yard: Yard, open_page: OpenPage, tab: str
) -> None:
    path = f"{yard.me()}/exact/runs/r2/{tab}"
    page = open_page(login_link(yard.home, path), width=390, height=844)
    expect(page.get_by_role("tab", selected=True)).to_be_in_viewport(ratio=1)


def test_a_spike_of_a_long_run_can_be_seen(yard: Yard, open_page: OpenPage) -> None:
    page = open_page(login_link(yard.home, f"{yard.me()}/spiky"))
    plot = _chart(page, "loss").locator(".plot")
    expect(plot).to_have_attribute("data-lines", "1")
    assert float(plot.get_attribute("data-top") or 0) >= 470
    assert plot.locator("canvas").first.evaluate(_STRONGEST) > 60


def test_a_report_has_the_charts_of_its_view(page: Page, yard: Yard) -> None:
    new = {"title": "losses", "notes": "", "view": {"query": "metrics=loss"}}
    made = yard.connection.post(f"/api/projects/{yard.me()}/exact/reports", new)
    page.goto(f"{yard.url}/{yard.me()}/exact/reports/{made['id']}")
    charts = page.locator(".report-charts .chart-title")
    expect(charts).to_have_text([re.compile("^loss"), re.compile("^val_loss")])
    page.get_by_role("button", name="Edit").click()
    expect(page.get_by_role("checkbox", name="loss", exact=True)).to_be_checked()
    expect(page.get_by_role("checkbox", name="val/acc")).not_to_be_checked()


def test_a_chart_is_saved_with_its_legend_and_its_axes(page: Page) -> None:
    saved: dict[str, bytes] = {}
    _chart(page, "loss").hover()
    for kind in ("SVG", "PNG", "PDF"):
        page.get_by_role("button", name="loss: more", exact=True).click()
        with page.expect_download() as download:
            page.get_by_role("menuitem", name=f"Save as {kind}", exact=True).click()
        assert download.value.suggested_filename == f"loss.{kind.lower()}"
        saved[kind] = Path(download.value.path()).read_bytes()
    text = saved["SVG"].decode()
    assert re.findall(r">(run-\d)</text>", text) == ["run-2", "run-1", "run-0"]
    assert ">step</text>" in text
    width = int(re.findall(r'<svg[^>]* width="(\d+)', text)[0])
    assert saved["PNG"].startswith(b"\x89PNG")
    # Sharp enough for paper.
    assert abs(int.from_bytes(saved["PNG"][16:20], "big") - 3 * width) <= 3
    assert saved["PDF"].startswith(b"%PDF-")
    # Words and lines, not a picture of them.
    assert b"/Subtype /Image" not in saved["PDF"]
    assert b"/Font" in saved["PDF"]
