"""A project with more runs and charts than a window holds: its layout, its selection and trash,
what a chart says, what stands on an axis, and the way back."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from runyard.home import Home
from tests.page.conftest import OpenPage, login_link
from tests.page.yard import Yard, open_yard

pytestmark = pytest.mark.live

# What `run.define_metric("val/*", step_metric="epoch")` and `("secret", hidden=True)` leave.
DEFINED = [{"1": "epoch", "6": [3]}, {"2": "val/*", "5": 1, "6": [3]}, {"1": "secret", "6": [2, 3]}]
_UPSERT = "mutation($input: UpsertBucketInput!) { upsertBucket(input: $input) { bucket { id } } }"


@pytest.fixture(scope="module")
def yard(module_home: Home) -> Yard:
    """Twelve metrics of twelve runs; the accuracy is of the even ones alone."""
    yard = open_yard(module_home)
    me = yard.me()
    for number in range(12):
        config = {"lr": {"value": number / 10}, "_wandb": {"value": {"m": DEFINED}}}
        place = {"entityName": me, "modelName": "wide", "name": f"r{number}"}
        new: dict[str, Any] = {
            **place,
            "displayName": f"run-{number}",
            "config": json.dumps(config),
        }
        if number < 2:
            new["tags"] = ["a-rather-long-tag", "another-long-tag"]
        answer = yard.connection.post("/graphql", {"query": _UPSERT, "variables": {"input": new}})
        assert "errors" not in answer
        high = 100.0 if number == 11 else 1.0
        rows: list[dict[str, Any]] = []
        for step in range(6):
            row = {f"part{place}/loss": high / (step + 1) for place in range(10)}
            row |= {"secret": 1.0, "epoch": step / 2, "val/error": 1.0 - step / 9}
            if number % 2 == 0:
                row["acc"] = step / 10 + number / 100
            rows.append(row)
        yard.log({"entity": me, "project": "wide", "id": f"r{number}"}, rows)
    return yard


@pytest.fixture
def page(yard: Yard, open_page: OpenPage) -> Page:
    page = open_page(login_link(yard.home, f"{yard.me()}/wide"), height=700)
    expect(page.locator(".run-link")).to_have_count(12)
    return page


def _lines(page: Page, metric: str, count: int) -> None:
    plot = page.get_by_role("region", name=f"Chart of {metric}", exact=True).locator(".plot")
    expect(plot).to_have_attribute("data-lines", str(count))


def test_panels_scroll_and_tools_and_the_selection_stay_in_sight(page: Page) -> None:
    _lines(page, "part0/loss", 12)
    assert page.evaluate("document.documentElement.scrollHeight <= innerHeight")
    page.locator(".charts-body").evaluate("it => it.scrollTo(0, it.scrollHeight)")
    expect(page.get_by_label("Find a metric")).to_be_in_viewport()
    page.get_by_role("checkbox", name="Select run-3", exact=True).check()
    expect(page.get_by_role("toolbar", name="Selected runs")).to_be_in_viewport(ratio=1)
    # Names keep room beside tags.
    width = page.get_by_role("link", name="run-0", exact=True).evaluate("it => it.clientWidth")
    assert width > 30
    # The charts are near for the keyboard, too.
    page.keyboard.press("Escape")
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    page.locator("a.skip").focus()
    for _ in range(10):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "Skip to charts":
            page.keyboard.press("Enter")
        if page.evaluate("!!document.activeElement.closest('.charts')"):
            break
    assert page.evaluate("!!document.activeElement.closest('.charts')")


def test_names_in_a_legend_can_be_read_on_a_narrow_screen(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_label("Find a metric").fill("acc")
    chart = page.get_by_role("region", name="Chart of acc", exact=True)
    chart.scroll_into_view_if_needed()
    names = chart.get_by_role("list", name="Lines").locator(".words")
    expect(names).to_have_count(6)
    assert names.evaluate_all("all => all.every((it) => it.scrollWidth <= it.clientWidth)")
    for number in range(6):
        expect(names.nth(number)).to_be_in_viewport(ratio=1)
    # The curves keep most of the chart.
    plot, box = chart.locator(".plot").bounding_box(), chart.bounding_box()
    assert plot is not None
    assert box is not None
    assert plot["height"] > box["height"] / 2


def test_a_deletion_is_of_runs_in_sight_named_and_restored(page: Page, yard: Yard) -> None:
    for name in ("run-1", "run-2", "run-3"):
        page.get_by_role("checkbox", name=f"Select {name}", exact=True).check()
    page.get_by_label("Search and filter runs").fill("lr >= 0.2 and lr <= 0.3")
    expect(page.locator(".run-link")).to_have_count(2)
    bar = page.get_by_role("toolbar", name="Selected runs")
    expect(bar).to_contain_text("2 selected")
    expect(bar).to_contain_text("1 more not in sight")
    page.locator(".table").focus()
    page.keyboard.press("Delete")
    asked = page.get_by_role("dialog", name="Delete 2 runs?")
    expect(asked.get_by_role("listitem")).to_have_text(["run-3", "run-2"])
    asked.get_by_role("button", name="Delete 2 runs", exact=True).click()
    expect(page.locator(".run-link")).to_have_count(0)
    page.get_by_label("Search and filter runs").fill("")
    expect(page.locator(".run-link")).to_have_count(10)
    assert yard.api.run("wide/r1")["name"] == "run-1"
    page.get_by_role("button", name="trash", exact=True).click()
    trash = page.get_by_role("dialog", name="Trash")
    expect(trash).to_contain_text("gone in 30 d")
    for name in ("run-2", "run-3"):
        trash.get_by_role("checkbox", name=re.compile(name)).check()
    trash.get_by_role("button", name="Restore 2 runs").click()
    expect(trash).to_contain_text("The trash is empty")
    page.keyboard.press("Escape")
    expect(page.locator(".run-link")).to_have_count(12)


def test_no_cell_of_a_saved_table_is_a_formula(yard: Yard, open_page: OpenPage) -> None:
    formula = "=cmd|' /C calc'!A1"
    place = {"entity": yard.me(), "project": "formulas", "id": "f1"}
    config = {"shift": -0.5, "flags": "-x 1", "@key": "-1e-7", "lines": "a\r=1"}
    # A setting is a column where it differs between runs.
    for name, settings in (("f0", {**dict.fromkeys(config, "x"), "shift": 1}), ("f1", config)):
        text = json.dumps({key: {"value": value} for key, value in settings.items()})
        new = {"entityName": yard.me(), "modelName": "formulas", "name": name, "config": text}
        new["displayName"] = formula if name == "f1" else name
        answer = yard.connection.post("/graphql", {"query": _UPSERT, "variables": {"input": new}})
        assert "errors" not in answer
    yard.log(place, [{formula: -1.0 - step} for step in range(3)])
    page = open_page(login_link(yard.home, f"{yard.me()}/formulas"))
    page.get_by_role("checkbox", name="Select all runs").check()
    page.get_by_role("button", name="More for the selected runs").click()
    with page.expect_download() as saved:
        page.get_by_role("menuitem", name="Save as CSV").click()
    with Path(saved.value.path()).open(newline="") as file:
        [row] = [row for row in csv.DictReader(file) if row["Id"] == "f1"]
    assert row["name"] == f"'{formula}"
    expected = {"shift": "-0.5", "flags": "'-x 1", "'@key": "-1e-7", "lines": "a\r=1"}
    assert {name: row.get(name) for name in expected} == expected
    chart = page.get_by_role("region", name=f"Chart of {formula}")
    expect(chart.locator(".plot")).to_have_attribute("data-lines", "1")
    chart.hover()
    chart.get_by_role("button", name=f"{formula}: more", exact=True).click()
    with page.expect_download() as saved:
        page.get_by_role("menuitem", name="Save as CSV", exact=True).click()
    with Path(saved.value.path()).open(newline="") as file:
        head, first, *_ = csv.reader(file)
    assert head == ["line", "step", "value", "low", "high"]
    assert first[:3] == [f"'{formula}", "0", "-1"]


def test_many_runs_are_archived_moved_and_saved_with_a_way_back(page: Page, yard: Yard) -> None:
    for name in ("run-4", "run-5"):
        page.get_by_role("checkbox", name=f"Select {name}", exact=True).check()
    more = page.get_by_role("button", name="More for the selected runs")
    more.click()
    with page.expect_download() as saved:
        page.get_by_role("menuitem", name="Save as CSV").click()
    head, *rows = Path(saved.value.path()).read_text().splitlines()
    assert head.startswith("name,Id,State")
    assert [row.split(",")[:2] for row in rows] == [["run-5", "r5"], ["run-4", "r4"]]
    more.click()
    with page.expect_download() as saved:
        page.get_by_role("menuitem", name="Save as LaTeX").click()
    assert "\\begin{tabular}{" in Path(saved.value.path()).read_text()
    more.click()
    page.get_by_role("menuitem", name="Archive", exact=True).click()
    expect(page.locator(".run-link")).to_have_count(10)
    page.get_by_role("button", name="2 archived").click()
    expect(page.locator(".run-link")).to_have_text(["run-5", "run-4"])
    page.locator(".toast", has_text="archived").get_by_role("button", name="Undo").click()
    page.get_by_label("Search and filter runs").fill("")
    expect(page.locator(".run-link")).to_have_count(12)
    more.click()
    page.get_by_role("menuitem", name="Move to another project").click()
    page.get_by_role("textbox", name="Project", exact=True).fill("other")
    page.keyboard.press("Enter")
    expect(page.locator(".toast", has_text="are at work")).to_be_visible()
    for name in ("r4", "r5"):
        place = f"/files/{yard.me()}/wide/{name}/file_stream"
        yard.connection.post(place, {"complete": True, "exitcode": 0})
    more.click()
    page.get_by_role("menuitem", name="Move to another project").click()
    page.get_by_role("textbox", name="Project", exact=True).fill("other")
    page.keyboard.press("Enter")
    expect(page.locator(".run-link")).to_have_count(10)
    assert yard.api.run("other/r4")["name"] == "run-4"
    page.locator(".toast", has_text="moved").get_by_role("button", name="Undo").click()
    expect(page.locator(".run-link")).to_have_count(12)


def test_many_runs_are_renamed_by_a_pattern_with_a_way_back(page: Page, yard: Yard) -> None:
    for name in ("run-6", "run-7"):
        page.get_by_role("checkbox", name=f"Select {name}", exact=True).check()
    page.get_by_role("button", name="More for the selected runs").click()
    page.get_by_role("menuitem", name="Rename").click()
    pattern = page.get_by_role("textbox", name="Name", exact=True)
    expect(pattern).to_have_value("{name}")
    pattern.fill("{n}: {name}")
    expect(page.get_by_role("list", name="New names").locator("li")).to_have_text(
        ["1: run-7", "2: run-6"]
    )
    # No column of it is shown: it is asked for.
    pattern.fill("lr {config.lr} of {name}")
    page.keyboard.press("Enter")
    expect(page.locator(".toast", has_text="2 runs renamed")).to_be_visible()
    assert yard.api.run(f"{yard.me()}/wide/r6")["name"] == "lr 0.6 of run-6"
    expect(page.locator(".run-link", has_text="lr 0.7 of run-7")).to_be_visible()
    page.locator(".toast", has_text="renamed").get_by_role("button", name="Undo").click()
    expect(page.locator(".run-link", has_text=re.compile("^run-7$"))).to_be_visible()
    assert yard.api.run(f"{yard.me()}/wide/r6")["name"] == "run-6"


def test_many_runs_are_changed_by_the_keyboard_alone(page: Page, yard: Yard) -> None:
    def focused() -> str:
        found: str = page.evaluate("document.activeElement.textContent.trim()")
        return found

    def go_to(name: str) -> None:
        for _ in range(12):
            if page.evaluate("document.activeElement.ariaLabel") == name:
                return
            page.keyboard.press("Tab")
        raise AssertionError(f"{name} is more than twelve stops away")

    def act(word: str) -> None:
        """By the menu, with its arrows."""
        go_to("More for the selected runs")
        page.keyboard.press("Enter")
        expect(page.get_by_role("menuitem").first).to_be_focused()
        words = []
        for _ in range(8):
            words.append(focused())
            if words[-1] == word:
                page.keyboard.press("Enter")
                return
            page.keyboard.press("ArrowDown")
        raise AssertionError(f"no {word} in the menu: {words}")

    # Arrows scroll the charts, and move in the table.
    _lines(page, "part0/loss", 12)
    page.keyboard.press("c")
    page.keyboard.press("ArrowDown")
    page.wait_for_function("document.activeElement?.matches('.charts-body')")
    page.wait_for_function("document.activeElement.scrollTop > 0")
    page.get_by_role("grid", name="Runs").focus()
    for key in ("ArrowDown", "Space", "ArrowDown", "Space"):
        page.keyboard.press(key)
    expect(page.get_by_role("toolbar", name="Selected runs")).to_contain_text("2 selected")
    act("Ask 2 runs to stop")
    expect(page.locator(".toast", has_text="2 runs asked to stop")).to_be_visible()
    assert [yard.api.run(f"wide/r{number}")["stop_asked"] for number in (11, 10, 9)] == [
        True,
        True,
        False,
    ]
    page.keyboard.press("Shift+Tab")
    go_to("Tags of the selected runs")
    page.keyboard.press("Enter")
    expect(page.get_by_role("textbox", name="New tag")).to_be_focused()
    page.keyboard.type("keyed")
    page.keyboard.press("Enter")
    expect(page.locator(".tag", has_text="keyed")).to_have_count(2)
    act("Archive")
    expect(page.locator(".run-link")).to_have_count(10)
    page.keyboard.press("/")
    page.keyboard.type("tag = archived")
    expect(page.locator(".run-link")).to_have_text(["run-11", "run-10"])
    page.get_by_role("grid", name="Runs").focus()
    for key in ("ArrowDown", "Space", "ArrowDown", "Space"):
        page.keyboard.press(key)
    act("Take out of the archive")
    expect(page.locator(".run-link")).to_have_count(0)


def test_the_newest_runs_are_shown_while_the_others_come(page: Page, yard: Yard) -> None:
    for number in range(510):
        run = {"entity": yard.me(), "project": "long", "id": f"l{number}", "command": ["true"]}
        yard.connection.post("/api/runs", {**run, "name": f"try-{number}"})
    held: list[Route] = []
    server = {"is": "slow"}

    def answer(route: Route) -> None:
        if server["is"] == "slow":
            held.append(route)
        else:
            route.continue_()

    page.route("**/long/runs?*before=*", answer)
    page.goto(f"{yard.url}/{yard.me()}/long")
    expect(page.locator(".run-link").first).to_have_text("try-509")
    search = page.get_by_label("Search and filter runs")
    search.fill("name = try-3")
    expect(page.locator(".run-link")).to_have_count(0)
    server["is"] = "quick"
    for route in held:
        route.continue_()
    expect(page.locator(".run-link")).to_have_text(["try-3"])
    # What is written later is told, and found.
    run = {"entity": yard.me(), "project": "long", "id": "late", "command": ["true"]}
    yard.connection.post("/api/runs", {**run, "name": "try-3"})
    expect(page.locator(".run-link")).to_have_count(2)


def test_loading_failed_and_absent_are_told_apart(page: Page) -> None:
    held: list[Route] = []
    server = {"is": "slow"}

    def answer(route: Route) -> None:
        if server["is"] == "slow":
            held.append(route)
        elif server["is"] == "away":
            route.abort()
        else:
            route.continue_()

    page.route("**/api/curves", answer)
    chart = page.get_by_role("region", name="Chart of acc", exact=True)
    page.get_by_label("The x axis").select_option("_runtime")
    page.get_by_label("Find a metric").fill("acc")
    state = chart.locator(".plot .empty")
    expect(state).to_have_text("loading…")
    server["is"] = "away"
    for route in held:
        route.abort()
    expect(state).to_contain_text("does not answer")
    server["is"] = "back"
    # Asked again by itself: there is no runtime in these rows.
    expect(state).to_contain_text("none of these runs has it")
    page.get_by_label("The x axis").select_option("_step")
    _lines(page, "acc", 6)
    page.get_by_label("Search and filter runs").fill("name = run-1")
    expect(chart.locator(".plot .empty")).to_have_text("none of these runs has it")


def test_an_axis_has_one_unit_and_define_metric_is_honoured(page: Page) -> None:
    _lines(page, "part0/loss", 12)
    expect(page.get_by_role("region", name="Chart of secret", exact=True)).to_have_count(0)
    # Its own step, without any choice.
    page.get_by_label("Find a metric").fill("val/error")
    chart = page.get_by_role("region", name="Chart of val/error", exact=True)
    _lines(page, "val/error", 12)
    plot = chart.locator(".u-over")
    plot.hover()
    expect(chart.locator(".tip-x")).to_contain_text("epoch")
    page.get_by_label("Find a metric").fill("part0")
    page.get_by_label("The x axis").select_option("acc")
    _lines(page, "part0/loss", 6)


def test_a_highlight_is_at_the_height_of_its_line_and_back_undoes(page: Page) -> None:
    chart = page.get_by_role("region", name="Chart of part0/loss", exact=True)
    _lines(page, "part0/loss", 12)
    search = page.get_by_label("Search and filter runs")
    search.fill("lr < 1")
    _lines(page, "part0/loss", 10)
    page.get_by_role("link", name="run-3", exact=True).hover()
    over = chart.locator(".plot-over")
    low = float(over.get_attribute("data-top") or 0)
    page.wait_for_timeout(1600)
    page.keyboard.press("/")
    page.keyboard.press("Control+A")
    page.keyboard.press("Delete")
    _lines(page, "part0/loss", 12)
    page.wait_for_function(
        "low => document.querySelector('.plot-over[data-top]')?.dataset.top > low", arg=low
    )
    drawn = chart.locator(".plot").get_attribute("data-top")
    assert over.get_attribute("data-top") == drawn
    # Back undoes each change of the view, one after the other.
    page.get_by_role("button", name="log y", exact=True).click()
    expect(page).to_have_url(re.compile("logy"))
    page.go_back()
    expect(page).not_to_have_url(re.compile("logy"))
    expect(page.locator(".run-link")).to_have_count(12)
    page.go_back()
    expect(page.locator(".run-link")).to_have_count(10)
