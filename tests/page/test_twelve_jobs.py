"""Twelve jobs of a researcher, each done in a real browser by a hand that counts its clicks.

The table in docs/page.md says how many clicks each takes; these tests hold it to that.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from runyard.client.api import Api
from runyard.client.discover import ensure_server
from runyard.home import Home
from tests.conftest import run_runyard
from tests.page import researcher
from tests.page.conftest import DRAWING, OpenPage, login_link
from tests.page.researcher import PROJECT, Hand, fill_untidy
from tests.page.yard import SEARCH, Yard, open_yard

pytestmark = pytest.mark.live

GUIDE = Path(__file__).parents[2] / "docs" / "page.md"
_ROW = re.compile(r"^\| (?P<job>[^|]+?) \| (?P<ours>\d+) \| (?P<theirs>[^|]+?) \|", re.MULTILINE)
Begin = Callable[..., Hand]


@pytest.fixture(scope="module")
def clicks() -> dict[str, int]:
    """What the guide says."""
    text = GUIDE.read_text(encoding="utf-8").partition("## How many clicks")[2]
    found = {row["job"]: int(row["ours"]) for row in _ROW.finditer(text)}
    assert len(found) == 12, sorted(found)
    return found


@pytest.fixture(scope="module")
def yard(module_home: Home, tmp_path_factory: pytest.TempPathFactory) -> Yard:
    researcher.train(module_home, tmp_path_factory.mktemp("flowers"))
    return open_yard(module_home)


@pytest.fixture
def begin(yard: Yard, open_page: OpenPage) -> Begin:
    """A hand on a page of the project."""

    def begin_at(place: str = PROJECT, runs: int = 12) -> Hand:
        page = open_page(login_link(yard.home, f"{yard.me()}/{place}"), height=1000)
        if runs:
            expect(page.locator(".run-link").first).to_be_visible()
            expect(page.get_by_text(f"{runs} runs", exact=True)).to_be_visible()
        return Hand(page)

    return begin_at


def chart(page: Page, metric: str) -> Locator:
    return page.get_by_role("region", name=f"Chart of {metric}", exact=True)


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=name, exact=True)


def test_the_best_two_are_found_and_compared(begin: Begin, clicks: dict[str, int]) -> None:
    hand = begin()
    page = hand.page
    hand.click(button(page, "accuracy"))  # The highest first.
    expect(page.locator(".run-link").first).to_have_text("lr0.1-s0")
    for name in ("lr0.1-s0", "lr0.1-s1"):
        hand.click(page.get_by_role("checkbox", name=f"Select {name}", exact=True))
    hand.click(button(page, "Compare"))
    expect(page.get_by_role("dialog").get_by_role("row", name="seed")).to_be_visible()
    assert hand.clicks == clicks["find the best two runs and compare them"]


def test_runs_are_grouped_by_all_but_their_seed(begin: Begin, clicks: dict[str, int]) -> None:
    hand = begin()
    page = hand.page
    hand.click(button(page, "Group runs"))
    hand.choose(page.get_by_label("Group by"), "everything but seed")
    expect(page.get_by_text("4 groups")).to_be_visible()
    expect(chart(page, "loss").locator(".chart-title")).to_contain_text("mean")
    assert hand.clicks == clicks["draw means over seeds"]


def test_charts_have_axes_of_ones_own(begin: Begin, clicks: dict[str, int]) -> None:
    hand = begin()
    page = hand.page
    hand.choose(page.get_by_label("The x axis"), "epoch")
    hand.click(button(page, "log y"))
    expect(chart(page, "loss").locator(".plot")).to_have_attribute("data-lines", "12")
    expect(page).to_have_url(re.compile("x=epoch"))
    assert hand.clicks == clicks["draw all charts over epochs, with a log y axis"]


def test_pictures_of_four_runs_are_side_by_side(begin: Begin, clicks: dict[str, int]) -> None:
    hand = begin()
    page = hand.page
    panel = page.get_by_role("region", name="samples", exact=True)
    panel.scroll_into_view_if_needed()
    expect(panel.locator("img")).to_have_count(4)
    hand.type(page.get_by_label("Step of samples"), "0")
    expect(panel.get_by_text("0.1 at 0")).to_be_visible()
    expect(panel.get_by_text("0.003 at 0")).to_be_visible()
    assert hand.clicks == clicks["see the images of four runs side by side, at one step"]


def test_the_confusion_matrices_of_two_runs(begin: Begin, clicks: dict[str, int]) -> None:
    hand = begin()
    page = hand.page
    for name in ("lr0.1-s0", "lr0.03-s0"):
        hand.click(page.get_by_role("checkbox", name=f"Select {name}", exact=True))
    hand.click(button(page, "Draw only these"))
    panel = page.get_by_role("region", name="confusion", exact=True)
    panel.scroll_into_view_if_needed()
    expect(panel.locator(".viewer")).to_have_count(2)
    for viewer in panel.locator(".viewer").all():
        viewer.scroll_into_view_if_needed()
        expect(viewer).to_have_attribute("data-state", "drawn", timeout=DRAWING)
    assert hand.clicks == clicks["see the confusion matrices of two runs"]


def test_a_figure_and_a_table_for_the_paper(begin: Begin, clicks: dict[str, int]) -> None:
    hand = begin()
    page = hand.page
    chart(page, "loss").hover()
    hand.click(button(page, "loss: more"))
    figure = hand.drop(page.get_by_role("menuitem", name="Save as PDF", exact=True))
    assert figure.read_bytes().startswith(b"%PDF-")
    hand.click(page.get_by_role("checkbox", name="Select all runs"))
    hand.click(button(page, "More for the selected runs"))
    table = hand.drop(page.get_by_role("menuitem", name="Save as LaTeX")).read_text()
    assert table.count("\\\\") >= 12
    assert hand.clicks == clicks["save a figure and a LaTeX table for a paper"]


def test_what_a_run_printed_and_its_environment(
    begin: Begin, clicks: dict[str, int], yard: Yard, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text("import wandb\nwandb.init()\nprint('a word of it')\n")
    done = run_runyard(
        "run", "-q", "-P", "printing", "-e", "told", "--", sys.executable, "train.py", cwd=tmp_path,
        env={"WANDB_X_SAVE_REQUIREMENTS": "true"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    hand = begin("printing", runs=0)
    page = hand.page
    hand.click(page.get_by_role("link", name="told", exact=True))
    hand.click(page.get_by_role("tab", name="Console"))
    expect(page.locator(".console-line", has_text="a word of it")).to_be_visible()
    hand.click(page.get_by_role("tab", name="Files"))
    hand.click(button(page, "requirements.txt"))
    expect(page.get_by_role("dialog")).to_contain_text("wandb==")
    assert hand.clicks == clicks["read what a run printed, and which packages it had"]


def test_a_sweep_is_paused_and_made_shorter(
    begin: Begin, clicks: dict[str, int], yard: Yard
) -> None:
    sweep = yard.sweep({**SEARCH, "method": "random", "name": "steered"}, project=PROJECT)
    hand = begin()
    page = hand.page
    hand.click(page.get_by_role("link", name="Sweeps"))
    hand.click(page.get_by_role("link", name="steered"))
    hand.click(button(page, "Pause"))
    expect(page.get_by_text("Paused: what runs goes on")).to_be_visible()
    hand.click(page.get_by_role("button", name="change how many trials"))
    hand.type(page.get_by_label("At most this many trials"), "12")
    hand.click(button(page, "Change"))
    expect(page.get_by_role("button", name="change how many trials")).to_have_text("Cap: 12")
    assert yard.connection.get(f"/api/sweeps/{sweep['key']}")["state"] == "paused"
    assert hand.clicks == clicks["pause a sweep and change how many trials it has"]


def test_a_report_of_what_one_looks_at(begin: Begin, clicks: dict[str, int]) -> None:
    hand = begin()
    page = hand.page
    hand.click(button(page, "Keep this view as a report"))
    hand.type(page.get_by_label("Title"), "What won")
    hand.type(page.get_by_label("Notes, in Markdown"), "It is **0.1**.")
    hand.click(button(page, "Save"))
    expect(page.get_by_role("heading", name="What won")).to_be_visible()
    expect(chart(page, "loss")).to_be_visible()
    assert hand.clicks == clicks["write a report of the charts one looks at"]


def test_a_hundred_runs_are_tidied(begin: Begin, clicks: dict[str, int], yard: Yard) -> None:
    fill_untidy(yard, 100)
    hand = begin("untidy", runs=100)
    page = hand.page
    hand.type(page.get_by_label("Search and filter runs"), "loss > 0.02")
    expect(page.get_by_text(re.compile("^49 of 100 runs"))).to_be_visible()
    hand.click(page.get_by_role("checkbox", name="Select all runs"))
    hand.click(button(page, "Delete"))
    hand.click(page.get_by_role("dialog").get_by_role("button", name="Delete 49 runs"))
    hand.type(page.get_by_label("Search and filter runs"), "")
    expect(page.get_by_text("51 runs", exact=True)).to_be_visible()
    hand.click(page.get_by_role("checkbox", name="Select all runs"))
    hand.click(button(page, "More for the selected runs"))
    hand.click(page.get_by_role("menuitem", name="Archive", exact=True))
    expect(page.get_by_role("button", name="51 archived")).to_be_visible()
    assert hand.clicks == clicks["tidy 100 runs: delete the worst half, archive the others"]


def test_a_colleague_logs_in_and_looks(
    clicks: dict[str, int], yard: Yard, open_page: OpenPage
) -> None:
    admin: Api = ensure_server(yard.home).api
    key = admin.people.add_user("carol")["key"]
    admin.people.add_team("lab", ["carol"])
    run = {"entity": "lab", "project": "ours", "id": "shared1"}
    yard.connection.post("/api/runs", {**run, "name": "shared", "command": ["true"]})
    yard.log(run, [{"loss": 1.0}, {"loss": 0.5}])
    hand = Hand(open_page(admin.url))
    page = hand.page
    hand.type(page.get_by_label("Link, code or key"), key)
    page.keyboard.press("Enter")
    hand.click(page.get_by_role("link", name="ours"))
    expect(chart(page, "loss").locator(".plot")).to_have_attribute("data-lines", "1")
    assert hand.clicks == clicks["a colleague logs in and looks at a team's run"]


def test_by_the_keyboard_alone(begin: Begin, clicks: dict[str, int]) -> None:
    hand = begin()
    page = hand.page
    page.keyboard.press("/")
    page.keyboard.type("lr = 0.1")
    expect(page.get_by_text(re.compile("^3 of 12 runs"))).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("grid", name="Runs").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    expect(page.get_by_text("1 selected")).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("tab", name="Charts")).to_be_visible()
    assert hand.clicks == clicks["search, select and open a run by the keyboard alone"]
