"""The project and run pages in a real browser, over runs of the real client."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from runyard.client.api import Api
from runyard.client.discover import ensure_server
from runyard.home import Home
from tests.live.programs import stock_client, write_program
from tests.page.accessibility import serious, wide
from tests.page.conftest import OpenPage, login_link
from tests.page.proxy import proxy
from tests.page.training import PROJECT, train

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def yard(
    module_home: Home,
    module_environment: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> Home:
    """A state folder with seven runs in one project."""
    module_environment.setenv("WANDB_X_SAVE_REQUIREMENTS", "true")
    train(module_home, tmp_path_factory.mktemp("training"))
    return module_home


@pytest.fixture
def api(yard: Home) -> Api:
    return ensure_server(yard).api


@pytest.fixture
def me(api: Api) -> str:
    return api.runs(limit=1)[0]["entity"]


def expect_runs(page: Page, *names: str) -> None:
    """The table's runs, in its order."""
    expect(page.locator(".run-link")).to_have_text(list(names))


def test_a_link_logs_in_once(yard: Home, open_page: OpenPage) -> None:
    link = login_link(yard)
    page = open_page(link)
    expect(page.get_by_role("link", name=PROJECT)).to_be_visible()
    assert "code=" not in page.url, "the code is gone from the address bar"
    page.reload()
    expect(page.get_by_role("link", name=PROJECT)).to_be_visible()

    stranger = open_page(link)
    expect(stranger.get_by_text("was used before")).to_be_visible()
    expect(stranger.get_by_text("runyard ui", exact=True)).to_be_visible()
    assert PROJECT not in stranger.content()


def test_the_link_that_the_client_prints_leads_to_the_run(
    yard: Home, me: str, open_page: OpenPage
) -> None:
    page = open_page(login_link(yard, f"{me}/{PROJECT}/runs/run1"))
    expect(page.get_by_role("heading", name="spiral-1", exact=True)).to_be_visible()
    expect(page.get_by_role("region", name="Chart of train/loss")).to_be_visible()
    page.get_by_role("link", name=PROJECT).click()
    expect(page.get_by_text("7 runs")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", name="spiral-1", exact=True)).to_be_visible()


def test_search_sort_and_the_whole_view_in_the_address(
    yard: Home, me: str, open_page: OpenPage
) -> None:
    page = open_page(login_link(yard, f"{me}/{PROJECT}"))
    expect(page.locator(".run-link")).to_have_count(7)
    page.keyboard.press("/")
    page.keyboard.type("lr >= 0.01 and state = finished")
    expect(page.locator(".run-link")).to_have_count(3)
    page.get_by_role("button", name="Name", exact=True).click()
    expect_runs(page, "spiral-1", "spiral-2", "spiral-5")
    page.get_by_role("button", name="log y", exact=True).click()
    page.get_by_label("Smoothing").fill("0.5")
    expect(page).to_have_url(re.compile(r"smooth=0.5"))

    again = page.context.new_page()
    again.goto(page.url)
    expect_runs(again, "spiral-1", "spiral-2", "spiral-5")
    expect(again.get_by_role("button", name="log y", exact=True)).to_have_attribute(
        "aria-pressed", "true"
    )
    again.get_by_label("Search and filter runs").fill("lr >>")
    expect(again.get_by_role("alert")).to_contain_text("lr >")


def test_runs_are_renamed_tagged_hidden_compared_and_deleted_with_a_way_back(
    yard: Home, me: str, api: Api, open_page: OpenPage
) -> None:
    page = open_page(login_link(yard, f"{me}/{PROJECT}"))
    row = page.get_by_role("row").filter(has_text="spiral-2")
    row.hover()
    row.get_by_role("button", name="spiral-2: more", exact=True).click()
    page.get_by_role("menuitem", name="Rename", exact=True).click()
    page.get_by_role("textbox", name="Name", exact=True).fill("the best one")
    # The page shows the new name at once; the server has it when it has answered.
    with page.expect_response(lambda it: it.url.endswith("/rename")):
        page.get_by_role("textbox", name="Name", exact=True).press("Enter")
    expect(page.get_by_role("link", name="the best one", exact=True)).to_be_visible()

    for name in ("spiral-0", "the best one"):
        page.get_by_role("checkbox", name=f"Select {name}", exact=True).check()
    page.get_by_role("button", name="Tags of the selected runs", exact=True).click()
    page.get_by_role("textbox", name="New tag", exact=True).fill("keep")
    with page.expect_response(lambda it: it.url.endswith("/tags")):
        page.get_by_role("textbox", name="New tag", exact=True).press("Enter")
    expect(page.locator(".tag", has_text="keep")).to_have_count(2)
    assert sorted(api.run(f"{PROJECT}/run2")["tags"]) == ["keep"]
    assert api.run(f"{PROJECT}/run2")["name"] == "the best one"

    page.get_by_role("button", name="Compare", exact=True).click()
    table = page.get_by_role("dialog").get_by_role("table")
    expect(table.get_by_role("row", name="lr")).to_contain_text("0.001")
    expect(table.get_by_role("row", name="lr")).to_contain_text("0.1")
    expect(table).not_to_contain_text("model.width")
    page.keyboard.press("Escape")

    page.get_by_role("button", name="Draw only these", exact=True).click()
    expect(page.get_by_text("show 5 hidden")).to_be_visible()
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Delete 2 runs", exact=True).click()
    expect(page.get_by_role("link", name="the best one", exact=True)).to_have_count(0)
    page.locator(".toast", has_text="trash").get_by_role("button", name="Undo").click()
    expect(page.get_by_role("link", name="the best one", exact=True)).to_be_visible()
    assert api.run(f"{PROJECT}/run2")["id"] == "run2"


def test_charts_zoom_together_and_groups_have_means(
    yard: Home, me: str, open_page: OpenPage
) -> None:
    page = open_page(login_link(yard, f"{me}/{PROJECT}"))
    chart = page.get_by_role("region", name="Chart of train/loss")
    expect(chart.locator(".plot")).to_have_attribute("data-lines", "6")
    plot = chart.locator(".u-over")
    plot.hover()  # Scrolls there, and waits until it does not move any more.
    box = plot.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 40, steps=4)
    page.mouse.up()
    expect(page).to_have_url(re.compile(r"zoom=1\d(\.\d+)?\.\.(29|30)"))

    # The mouse is there before the lines are, rests, and still gets their values.
    held: list[Route] = []
    is_there = threading.Event()
    page.route(
        "**/api/curves",
        lambda asked: asked.continue_() if is_there.is_set() else held.append(asked),
    )
    with page.expect_request("**/api/curves"):
        page.keyboard.press("z")
    expect(page).not_to_have_url(re.compile("zoom="))
    expect(page.get_by_role("button", name="reset", exact=True)).to_have_count(0)
    expect(page.locator(".plot .empty").first).to_be_attached()
    box = plot.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 31 / 59, box["y"] + 8, steps=3)
    is_there.set()
    for asked in held:
        asked.continue_()
    expect(page.locator(".tip-row.first")).to_contain_text("spiral-1")

    page.get_by_role("button", name="Group runs", exact=True).click()
    page.get_by_label("Group by").select_option("everything but seed")
    expect(page.get_by_text("4 groups")).to_be_visible()
    expect(page.locator(".chart-title", has_text="train/loss")).to_contain_text("mean")
    page.keyboard.press("Escape")

    page.get_by_role("region", name="Chart of train/loss").hover()
    page.get_by_role("button", name="train/loss: more", exact=True).click()
    with page.expect_download() as saved:
        page.get_by_role("menuitem", name="Save as CSV", exact=True).click()
    text = Path(saved.value.path()).read_text()
    assert text.startswith("line,step,value,low,high\n")
    assert "(2 runs)" in text
    page.get_by_role("button", name="train/loss: more", exact=True).click()
    with page.expect_download() as saved:
        page.get_by_role("menuitem", name="Save as SVG", exact=True).click()
    assert Path(saved.value.path()).read_text().count("<path") > 3


def test_a_run_shows_what_it_is_and_what_it_left(yard: Home, me: str, open_page: OpenPage) -> None:
    page = open_page(login_link(yard, f"{me}/{PROJECT}/runs/run0"))
    page.get_by_role("tab", name="Overview").click()
    expect(page.get_by_role("region", name="Config")).to_contain_text("model.width64")
    page.get_by_role("textbox", name="Notes", exact=True).fill("a first try")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Saved")).to_be_visible()

    page.get_by_role("tab", name="Media").click()
    samples = page.get_by_role("region", name="samples")
    expect(samples.get_by_alt_text("at 50")).to_be_visible()
    samples.get_by_label("Step of samples").fill("1")
    expect(samples.get_by_alt_text("at 10")).to_be_visible()
    loaded = samples.locator("img").evaluate(
        "image => image.decode().then(() => image.naturalWidth)"
    )
    assert loaded == 8
    expect(page.get_by_role("region", name="answers").get_by_role("row")).to_have_count(3)

    page.get_by_role("tab", name="Files").click()
    page.get_by_role("button", name="requirements.txt", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("wandb==")
    page.keyboard.press("Escape")

    page.get_by_role("tab", name="Artifacts").click()
    page.get_by_role("button", name="weights:v0").click()
    expect(page.get_by_text("weights.txt")).to_be_visible()
    with page.expect_download() as saved:
        page.get_by_role("link", name="Download").click()
    assert Path(saved.value.path()).read_text() == "1 2 3"
    used_by = page.locator(".used-by").get_by_role("link", name="spiral-1", exact=True)
    expect(used_by).to_have_attribute("href", re.compile("/runs/run1$"))

    page.goto(page.url.replace("run0", "run1").split("?")[0] + "?tab=artifacts")
    expect(page.get_by_role("link", name="run0")).to_be_visible()
    page.get_by_role("tab", name="Compare").click()
    page.get_by_label("The other run").select_option("run0")
    expect(page.get_by_role("row", name="lr")).to_contain_text("0.01")


def test_gradients_are_drawn_over_the_steps(yard: Home, me: str, open_page: OpenPage) -> None:
    page = open_page(login_link(yard, f"{me}/{PROJECT}/runs/run0?tab=media"))
    panel = page.get_by_role("region", name="gradients/layers.0.weight")
    expect(panel.get_by_label("Histogram from -10 to 10")).to_be_visible()
    drawn = panel.get_by_label("gradients/layers.0.weight over the steps, from -60 to 60")
    # The first of six columns is filled from top to bottom, the last one in its middle.
    columns = drawn.evaluate(
        "drawn => [0, 5].map(x => [...Array(drawn.height).keys()].filter("
        "y => drawn.getContext('2d').getImageData(x, y, 1, 1).data[3]))"
    )
    assert columns[0] == list(range(64))
    assert 24 <= min(columns[1]) < max(columns[1]) <= 40
    # A click shows that step's histogram.
    drawn.click(position={"x": 5, "y": 5})
    expect(panel.get_by_label("Histogram from -60 to 60")).to_be_visible()


def test_a_console_is_searched_and_shows_why_it_ended(
    yard: Home, me: str, api: Api, open_page: OpenPage
) -> None:
    run = api.run(f"{PROJECT}/colours")
    page = open_page(login_link(yard, f"{me}/{PROJECT}/runs/{run['id']}/logs"))
    expect(page.get_by_text("the last word")).to_be_visible()
    assert page.locator(".console-line").count() < 200, "what is out of sight is not drawn"
    page.get_by_label("Search the output").fill("red words")
    expect(page.get_by_text("1 of 1")).to_be_visible()
    expect(page.locator(".ansi-1", has_text="red words")).to_be_visible()
    page.get_by_role("tab", name="Overview").click()
    expect(page.get_by_role("region", name="Attempts")).to_contain_text("exit code 3")


def test_a_live_run_grows_while_one_looks(
    yard: Home, me: str, tmp_path: Path, open_page: OpenPage
) -> None:
    program = write_program(
        tmp_path,
        "import sys, wandb\n"
        "run = wandb.init(id='alive', name='alive', project='spirals')\n"
        "for line in sys.stdin: run.log({'fresh': float(line)})\n"
        "run.finish()\n",
    )
    page = open_page(login_link(yard, f"{me}/{PROJECT}"))
    expect(page.locator(".run-link")).to_have_count(7)
    process = subprocess.Popen(
        [sys.executable, str(program)],
        cwd=tmp_path,
        env={**os.environ, **stock_client(yard)},
        stdin=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    try:
        process.stdin.write("1\n2\n")
        process.stdin.flush()
        expect(page.get_by_role("link", name="alive", exact=True)).to_be_visible()
        page.get_by_role("link", name="alive", exact=True).click()
        chart = page.get_by_role("region", name="Chart of fresh")
        expect(chart).to_be_visible()
        expect(page.get_by_text("2 rows")).to_be_visible()
        process.stdin.write("5\n")
        process.stdin.flush()
        expect(page.get_by_text("3 rows")).to_be_visible()
    finally:
        process.stdin.close()
        process.wait(180)
    expect(page.locator(".run-head .state-finished")).to_be_visible()


def test_it_works_below_a_path_and_without_streams(
    yard: Home, me: str, api: Api, open_page: OpenPage
) -> None:
    with proxy(api.url, "/user/ada/proxy/8123") as base:
        page = open_page(login_link(yard, base=base))
        page.get_by_role("link", name=PROJECT).first.click()
        expect(page.get_by_role("region", name="Chart of train/loss")).to_be_visible()
        assert page.url.startswith(f"{base}/{me}/{PROJECT}")
        cookies = page.context.cookies()
        assert [cookie["path"] for cookie in cookies] == ["/user/ada/proxy/8123/"]
        assert cookies[0]["httpOnly"]
        assert cookies[0]["sameSite"] == "Strict"

        page.goto(f"{base}/{me}/{PROJECT}/runs/run3")
        expect(page.get_by_role("heading", name="spiral-3", exact=True)).to_be_visible()
        page.get_by_role("tab", name="Overview").click()
        page.get_by_label("Add a tag").fill("seen")
        page.get_by_label("Add a tag").press("Enter")
        expect(page.locator(".run-head .tag", has_text="seen")).to_be_visible()
        # Nobody tells this page: it asks.
        expect(page.locator(".live-asking")).to_be_visible()
        assert api.run(f"{PROJECT}/run3")["tags"] == ["seen"]

        colours = api.run(f"{PROJECT}/colours")["id"]
        page.goto(f"{base}/{me}/{PROJECT}/runs/{colours}/console")
        expect(page.get_by_text("the last word")).to_be_visible()
        page.goto(f"{base}/{me}/{PROJECT}/runs/run0/media")
        picture = page.get_by_role("region", name="samples").locator("img")
        assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") == 8
        page.get_by_role("tab", name="Artifacts").click()
        page.get_by_role("button", name="weights:v0").click()
        with page.expect_download() as saved:
            page.get_by_role("link", name="Download").click()
        assert Path(saved.value.path()).read_text() == "1 2 3"


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 390)])
def test_pages_can_be_used_by_everybody_and_on_a_phone(
    yard: Home, me: str, api: Api, open_page: OpenPage, scheme: str, width: int
) -> None:
    page = open_page(login_link(yard), width=width, height=844, color_scheme=scheme)
    run, failed = f"{me}/{PROJECT}/runs/run0", api.run(f"{PROJECT}/colours")["id"]
    pair = ",".join(str(api.run(f"{PROJECT}/run{number}")["key"]) for number in (1, 2))

    def region(name: str) -> Locator:
        return page.get_by_role("region", name=name, exact=True)

    places = {
        "": page.get_by_role("link", name=PROJECT).first,
        f"{me}/{PROJECT}": page.locator(".run-link").first,
        f"{me}/{PROJECT}?group=config.lr": page.get_by_text("4 groups"),
        f"{me}/{PROJECT}?panel=charts": page.locator(".u-over").first,
        f"{me}/{PROJECT}?compare={pair}": page.get_by_role("dialog").get_by_role("row").nth(1),
        f"{run}": page.locator(".u-over").first,
        f"{run}/overview": region("Config"),
        f"{run}/console": page.locator(".console-line").first,
        f"{run}/system": page.get_by_role("tab", name="System", selected=True),
        f"{run}/media": region("samples"),
        f"{run}/files": region("Files"),
        f"{run}/artifacts": region("Logged"),
        f"{run}/versus?versus=run1": page.get_by_role("row", name="lr"),
        f"{me}/{PROJECT}/runs/{failed}/console": page.get_by_text("the last word"),
        f"{me}/{PROJECT}/runs/{failed}/overview": region("Attempts"),
        f"{me}/{PROJECT}/runs/nobody": page.get_by_text("There is no run"),
    }
    found = {}
    for path, shown in places.items():
        page.goto(f"{api.url}/{path}")
        expect(shown).to_be_visible()
        expect(page.locator(".spinner")).to_have_count(0)
        found[path] = serious(page)
        assert wide(page) == 0, f"{path} is wider than the window"
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    found["the help"] = serious(page)
    assert {path: trouble for path, trouble in found.items() if trouble} == {}
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(16, 19, 25)") == (scheme == "dark")


def test_what_is_not_there_says_so(yard: Home, me: str, open_page: OpenPage) -> None:
    page = open_page(login_link(yard, f"{me}/{PROJECT}/runs/nobody"))
    expect(page.get_by_text("There is no run")).to_be_visible()
    page.goto(page.url.replace(f"{PROJECT}/runs/nobody", "empty-project"))
    expect(page.get_by_text("There is no project")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_contain_text("light or dark")
