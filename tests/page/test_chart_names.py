"""Which charts there are is said by the project's names alone: a sparse metric has its chart,
though nothing else of it can be read; and while the names do not come, the page says so."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from runyard.home import Home
from tests.page.conftest import OpenPage, login_link
from tests.page.yard import Yard, open_yard

pytestmark = pytest.mark.live

ROWS = 560
# What a run has logged, and how many values each chart stands for.
LOGGED = {"train/loss": ROWS, "val/loss": ROWS // 20, "late": 1, "test/acc": 2}


@pytest.fixture(scope="module")
def yard(module_home: Home) -> Yard:
    """A run that logs row by row, most metrics of it only now and then; and a plain one."""
    yard = open_yard(module_home)
    for name, count in (("dense", 40), ("sparse", ROWS)):
        place = {"entity": yard.me(), "project": "sparse", "id": name}
        yard.connection.post("/api/runs", {**place, "name": name, "command": ["true"]})
        for step in range(count):
            row: dict[str, Any] = {"train/loss": 1.0 / (step + 1), "words": "not a number"}
            if name == "sparse":
                row |= {"val/loss": 1.0} if step % 20 == 19 else {}
                row |= {"test/acc": 0.5} if step in (3, 400) else {}
                row |= {"late": 1.0} if step == ROWS - 1 else {}
            yard.log(place, [row], start=step)
    for number in range(30):
        place = {"entity": yard.me(), "project": "many", "id": f"m{number}"}
        yard.connection.post("/api/runs", {**place, "name": f"m{number}", "command": ["true"]})
        yard.log(place, [{f"m{metric:02}": float(step) for metric in range(12)} for step in (0, 1)])
    return yard


def _chart(page: Page, metric: str) -> Any:
    return page.get_by_role("region", name=f"Chart of {metric}", exact=True)


def test_a_sparse_metric_has_its_chart_whatever_else_cannot_be_read(
    yard: Yard, open_page: OpenPage
) -> None:
    page = open_page(login_link(yard.home, ""), height=2600)  # What is not seen is not drawn.
    # What once said, as a side effect, which metrics a run has; it broke for sparse ones.
    page.route(re.compile(r"/api/runs/\d+/metrics"), lambda route: route.abort())
    sparse = f"{yard.url}/{yard.me()}/sparse"
    report = {"title": "sparse", "notes": "", "view": {"query": ""}}
    made = yard.connection.post(f"/api/projects/{yard.me()}/sparse/reports", report)
    for address in (f"{sparse}/runs/sparse", sparse, f"{sparse}/reports/{made['id']}"):
        page.goto(address)
        for metric in LOGGED:
            chart = _chart(page, metric)
            chart.scroll_into_view_if_needed()
            plot = chart.locator(".plot")
            expect(plot).not_to_have_attribute("data-lines", "0")
            if address.endswith("/runs/sparse"):
                expect(plot).to_have_attribute("data-points", str(LOGGED[metric]))
        expect(page.locator(".chart")).to_have_count(len(LOGGED))
    page.goto(f"{sparse}/runs/dense")
    expect(_chart(page, "train/loss")).to_be_visible()
    expect(page.locator(".chart")).to_have_count(1)


def test_names_that_do_not_come_are_asked_for_again(yard: Yard, open_page: OpenPage) -> None:
    page = open_page(login_link(yard.home, ""), height=2600)  # What is not seen is not drawn.
    server = {"is": "away"}

    def answer(route: Route) -> None:
        if server["is"] == "away":
            route.abort()
        else:
            route.continue_()

    page.route("**/api/projects/*/sparse/keys", answer)
    sparse = f"{yard.url}/{yard.me()}/sparse"
    report = {"title": "away", "notes": "", "view": {"query": ""}}
    made = yard.connection.post(f"/api/projects/{yard.me()}/sparse/reports", report)
    for address in (f"{sparse}/runs/sparse", sparse, f"{sparse}/reports/{made['id']}"):
        server["is"] = "away"
        page.goto(address)
        expect(page.get_by_role("alert")).to_contain_text("does not answer")
        expect(page.get_by_text("Nothing was logged yet")).to_have_count(0)
        server["is"] = "back"
        expect(_chart(page, "train/loss")).to_be_visible()
        expect(page.get_by_role("alert")).to_have_count(0)


def test_many_curves_come_in_parts(yard: Yard, open_page: OpenPage) -> None:
    """The first charts are drawn before the last ones are read, and do not fail with them."""
    page = open_page(login_link(yard.home, ""), height=2600)
    held: list[Route] = []
    server = {"is": "slow"}

    def answer(route: Route) -> None:
        asked: Any = route.request.post_data_json
        assert len(asked["metrics"]) * len(asked["runs"]) <= 300
        if "m11" in asked["metrics"] and server["is"] == "slow":
            held.append(route)
        elif "m00" in asked["metrics"] and server["is"] == "away":
            route.abort()
        else:
            route.continue_()

    page.route("**/api/curves", answer)
    page.goto(f"{yard.url}/{yard.me()}/many")
    expect(_chart(page, "m00").locator(".plot")).to_have_attribute("data-lines", "30")
    expect(_chart(page, "m11").locator(".plot .empty")).to_have_text("loading…")
    server["is"] = "quick"
    for route in held:
        route.continue_()
    expect(_chart(page, "m11").locator(".plot")).to_have_attribute("data-lines", "30")
    server["is"] = "away"
    page.reload()
    expect(_chart(page, "m00").locator(".plot .empty")).to_contain_text("does not answer")
    expect(_chart(page, "m11").locator(".plot")).to_have_attribute("data-lines", "30")
    server["is"] = "back"
    expect(_chart(page, "m00").locator(".plot")).to_have_attribute("data-lines", "30")
