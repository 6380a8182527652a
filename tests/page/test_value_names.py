"""Values have one name everywhere: the best and the last are told apart, `define_metric` names what
a summary holds, settings keep all their digits. And Back undoes each change of the view."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from runyard.home import Home
from tests.page.conftest import OpenPage, login_link
from tests.page.yard import Yard, open_yard

pytestmark = pytest.mark.live

SWEEP = {
    "name": "rates",
    "method": "grid",
    "program": "train.py",
    "metric": {"name": "val_loss", "goal": "minimize"},
    "parameters": {"rate": {"values": [0.00012345, 0.00012346, 0.00012347]}},
}
# What `define_metric` leaves: `"acc", summary="max"`, `"secret", hidden=True`, and
# `"cost", summary="best", goal="minimize"`.
DEFINED = [{"1": "acc", "7": [2]}, {"1": "secret", "6": [2]}, {"1": "cost", "7": [4], "8": 1}]
_UPSERT = "mutation($input: UpsertBucketInput!) { upsertBucket(input: $input) { bucket { id } } }"


@pytest.fixture(scope="module")
def yard(module_home: Home) -> Yard:
    """Three trials whose last value is worse than their best; two runs with defined metrics."""
    yard = open_yard(module_home)
    sweep = yard.sweep(SWEEP, "names")
    yard.work(sweep, 3, lambda values: {"val_loss": 0.5 + values["rate"] * 1000})
    me = yard.me()
    for trial in yard.connection.get(f"/api/sweeps/{sweep['key']}/trials"):
        place = {"entity": me, "project": "names", "id": trial["id"]}
        yard.log(place, [{"val_loss": 7.5}], start=8)
        yard.summarise(place, {"val_loss": 7.5})
    for number in range(2):
        config = {"seed": {"value": number}, "_wandb": {"value": {"m": DEFINED}}}
        new: dict[str, Any] = {
            "entityName": me,
            "modelName": "defined",
            "name": f"d{number}",
            "displayName": f"defined-{number}",
            "config": json.dumps(config),
        }
        answer = yard.connection.post("/graphql", {"query": _UPSERT, "variables": {"input": new}})
        assert "errors" not in answer
        place = {"entity": me, "project": "defined", "id": f"d{number}"}
        rows = [{"acc": step / 10, "secret": 5 - step, "cost": 3 - number} for step in range(5)]
        yard.log(place, rows)
        summary: dict[str, Any] = {"acc": {"max": 0.4 + number / 10}, "secret": number}
        summary["cost"] = {"best": 3 - number}
        yard.summarise(place, summary)
    return yard


def _open(yard: Yard, open_page: OpenPage, place: str, runs: int) -> Page:
    page = open_page(login_link(yard.home, f"{yard.me()}/{place}?panel=runs"))
    expect(page.locator(".run-link")).to_have_count(runs)
    return page


def _head(page: Page, name: str) -> Any:
    return page.get_by_role("grid").get_by_role("button", name=name, exact=True)


def test_the_best_and_the_last_value_are_told_apart_everywhere(
    yard: Yard, open_page: OpenPage
) -> None:
    page = _open(yard, open_page, "names", 3)
    expect(_head(page, "val_loss (last)")).to_be_visible()
    # The first click sorts by the sweep's goal: the lowest first.
    _head(page, "val_loss (best)").click()
    row = page.get_by_role("row").nth(1)
    expect(row.locator(".run-link")).to_have_text("rate123em6")
    expect(row).to_contain_text("7.5")
    page.get_by_label("Search and filter runs").fill("best.val_loss < 0.623455")
    expect(page.locator(".run-link")).to_have_count(1)
    page.get_by_label("Search and filter runs").fill("")
    page.get_by_role("checkbox", name="Select all runs").check()
    page.get_by_role("button", name="More for the selected runs").click()
    with page.expect_download() as saved:
        page.get_by_role("menuitem", name="Save as CSV").click()
    head = Path(saved.value.path()).read_text().splitlines()[0]
    assert "val_loss (best),val_loss (last)" in head
    # The sweep's page, and a report.
    sweep = yard.connection.get("/api/sweeps", project="names")[0]
    page.goto(f"{yard.url}/{yard.me()}/names/sweeps/{sweep['id']}")
    expect(_head(page, "val_loss (best)")).to_be_visible()
    _head(page, "val_loss (last)").click()
    trial = page.get_by_role("grid", name="Trials").get_by_role("row").nth(1)
    expect(trial).to_contain_text("7.5")
    new = {"title": "rates", "notes": "", "view": {"query": ""}}
    made = yard.connection.post(f"/api/projects/{yard.me()}/names/reports", new)
    page.goto(f"{yard.url}/{yard.me()}/names/reports/{made['id']}")
    table = page.get_by_role("region", name="Runs", exact=True)
    heads = table.get_by_role("columnheader")
    expect(heads.filter(has_text="val_loss (best)")).to_have_count(1)
    expect(heads.filter(has_text="val_loss (last)")).to_have_count(1)


def test_settings_have_all_their_digits_wherever_they_are_compared(
    yard: Yard, open_page: OpenPage
) -> None:
    page = _open(yard, open_page, "names", 3)
    page.get_by_role("checkbox", name="Select all runs").check()
    page.get_by_role("button", name="Compare", exact=True).click()
    rates = page.get_by_role("dialog").get_by_role("row", name=re.compile("^rate 0"))
    expect(rates).to_contain_text("0.00012346")
    expect(rates).to_contain_text("0.00012347")
    sweep = yard.connection.get("/api/sweeps", project="names")[0]
    page.goto(f"{yard.url}/{yard.me()}/names/sweeps/{sweep['id']}")
    progress = page.get_by_role("region", name="Progress")
    expect(progress).to_contain_text("rate=0.00012345")
    expect(page.get_by_role("region", name="Search space")).to_contain_text("best: 0.00012345")
    new = {"title": "digits", "notes": "", "view": {"query": ""}}
    made = yard.connection.post(f"/api/projects/{yard.me()}/names/reports", new)
    page.goto(f"{yard.url}/{yard.me()}/names/reports/{made['id']}")
    expect(page.get_by_role("region", name="Runs", exact=True)).to_contain_text("0.00012346")
    with page.expect_download() as saved:
        page.get_by_role("button", name="HTML").click()
    text = Path(saved.value.path()).read_text()
    assert "0.00012346" in text
    assert "val_loss (best)" in text


def test_a_summary_is_named_by_what_was_defined_and_hidden_metrics_are_no_column(
    yard: Yard, open_page: OpenPage
) -> None:
    page = _open(yard, open_page, "defined", 2)
    _head(page, "acc (max)").click()
    expect(page.locator(".run-link").first).to_have_text("defined-1")
    expect(page.get_by_role("row").nth(1)).to_contain_text("0.5")
    # The lowest first, where that is the goal.
    _head(page, "cost (best)").click()
    expect(page.locator(".run-link").first).to_have_text("defined-1")
    _head(page, "cost (best)").click()
    expect(page.locator(".run-link").first).to_have_text("defined-0")
    expect(_head(page, "secret")).to_have_count(0)
    page.goto(f"{yard.url}/{yard.me()}/defined/runs/d1/overview")
    expect(page.get_by_role("region", name="Summary")).to_contain_text("acc (max)")
    # Nor does the thumbnail of the project show it.
    projects = yard.connection.get("/api/projects")["projects"]
    assert {project["name"]: project["metric"] for project in projects}["defined"] == "acc"


def test_undo_leaves_those_in_the_archive_that_were_there_before(
    yard: Yard, open_page: OpenPage
) -> None:
    page = _open(yard, open_page, "defined", 2)
    page.get_by_role("checkbox", name="Select defined-0", exact=True).check()
    more = page.get_by_role("button", name="More for the selected runs")
    more.click()
    page.get_by_role("menuitem", name="Archive", exact=True).click()
    expect(page.locator(".run-link")).to_have_count(1)
    page.get_by_label("Search and filter runs").fill('not (tag = "archived") or tag = "archived"')
    expect(page.locator(".run-link")).to_have_count(2)
    page.get_by_role("checkbox", name="Select all runs").check()
    more.click()
    page.get_by_role("menuitem", name="Archive", exact=True).click()
    toast = page.locator(".toast", has_text="1 run archived").last
    expect(toast).to_be_visible()
    expect(page.locator(".run-link", has_text="defined-1")).to_be_visible()
    assert yard.api.run("defined/d1")["tags"] == ["archived"]
    toast.get_by_role("button", name="Undo").click()
    page.get_by_label("Search and filter runs").fill("")
    expect(page.locator(".run-link")).to_have_text(["defined-1"])
    assert yard.api.run("defined/d0")["tags"] == ["archived"]
    key = yard.api.run("defined/d0")["key"]
    yard.connection.request("PATCH", f"/api/runs/{key}", {"tags": []}, query=None)


def test_back_undoes_each_change_of_the_view(yard: Yard, open_page: OpenPage) -> None:
    page = open_page(login_link(yard.home, f"{yard.me()}/names"))
    expect(page.locator(".run-link")).to_have_count(3)
    first = page.locator(".run-link").first.inner_text()
    steps: list[tuple[Callable[[], object], str]] = [
        (lambda: page.get_by_role("button", name="Runtime", exact=True).click(), "sort="),
        (
            lambda: page.get_by_role("button", name=f"Do not draw {first}", exact=True).click(),
            "hide=",
        ),
        (lambda: page.get_by_label("The x axis").select_option("_runtime"), "x="),
        (lambda: page.get_by_role("button", name="log x", exact=True).click(), "logx="),
        (lambda: page.get_by_label("Find a metric").fill("val"), "metrics="),
        (lambda: page.get_by_role("button", name="Charts only").click(), "panel="),
    ]
    for act, word in steps:
        act()
        expect(page).to_have_url(re.compile(rf"[?&]{word}"))
    for _, word in reversed(steps):
        expect(page).to_have_url(re.compile(rf"[?&]{word}"))
        page.go_back()
        expect(page).not_to_have_url(re.compile(rf"[?&]{word}"))
    expect(page.locator(".run-link")).to_have_count(3)
    assert page.url.endswith("/names")
