"""The pages of sweeps, jobs and reports in a real browser."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Mapping
from contextlib import closing
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from runyard.client.api import Api
from runyard.client.http import Connection
from runyard.home import Home
from tests.node.terminals import until
from tests.page.accessibility import serious, wide
from tests.page.conftest import OpenPage, login_link
from tests.page.proxy import proxy
from tests.page.yard import SEARCH, TWO_AIMS, Yard, loss_of, open_yard, record_jobs, trade_off

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def yard(module_home: Home) -> Yard:
    """A server with a search of 30 trials, one for two aims, jobs and agents."""
    random.seed(3)
    yard = open_yard(module_home)
    search = yard.sweep({**SEARCH, "method": "random", "name": "the search"})
    yard.work(search, 30, loss_of, stop=0.3, job="48213_2", node="ng30202")
    yard.work(yard.sweep({**TWO_AIMS, "name": "two aims"}), 14, trade_off)
    yard.keep_busy(search)
    record_jobs(yard, search)
    return yard


@pytest.fixture
def search(yard: Yard) -> Any:
    return yard.connection.get("/api/sweep", name="the search")


def show(yard: Yard, open_page: OpenPage, *parts: str, **options: Any) -> Page:
    page = open_page(login_link(yard.home, "/".join(parts)), **options)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    return page


def sweep_page(yard: Yard, open_page: OpenPage, sweep: Mapping[str, Any], **options: Any) -> Page:
    return show(yard, open_page, yard.me(), "birds", "sweeps", sweep["id"], **options)


def as_another(yard: Yard, url: str) -> str:
    """The same address, for a browser that is not logged in yet."""
    return f"{url}#{login_link(yard.home).partition('#')[2]}"


def drag_axis(page: Page, name: str, low: float, high: float) -> None:
    """Brush an axis of the parallel coordinates between two places of it, from 0 to 1."""
    axis = page.locator(".axis", has_text=name).locator(".axis-grip")
    # Waits until it does not move any more. Beside its middle, which a line covers.
    axis.hover(position={"x": 4, "y": 4})
    grip = axis.bounding_box()
    assert grip is not None
    x = grip["x"] + grip["width"] / 2
    page.mouse.move(x, grip["y"] + grip["height"] * (1 - high) + 1)
    page.mouse.down()
    page.mouse.move(x, grip["y"] + grip["height"] * (1 - low) - 1, steps=4)
    page.mouse.up()


def test_a_sweep_shows_how_far_it_is_what_won_and_what_matters(
    yard: Yard, open_page: OpenPage, search: Any
) -> None:
    page = sweep_page(yard, open_page, search)
    progress = page.get_by_role("region", name="Progress")
    expect(progress).to_contain_text("30 of 60")
    expect(progress).to_contain_text("1 failed")
    expect(progress).to_contain_text(search["best"]["name"])
    matters = page.get_by_role("region", name="Importance of parameters")
    # Not "higher is better": it is worse on both sides.
    expect(matters.get_by_role("listitem").first).to_contain_text(re.compile("^lr.*in between$"))
    expect(matters).to_contain_text("the rest is interaction or noise")
    space = page.get_by_role("region", name="Search space")
    expect(space).to_contain_text("numbers on a log scale from 1e-05 to 0.1")
    trials = page.get_by_role("grid", name="Trials")
    expect(trials).to_contain_text("early")
    # The lowest first: the sweep minimizes it.
    trials.get_by_role("button", name="val_loss (best)", exact=True).click()
    first = trials.get_by_role("row").nth(1)
    expect(first).to_contain_text("best")


def test_a_brush_chooses_trials_everywhere_and_stands_in_the_address(
    yard: Yard, open_page: OpenPage, search: Any
) -> None:
    page = sweep_page(yard, open_page, search)
    drag_axis(page, "depth", 0.0, 0.4)
    chosen = page.get_by_role("button", name="chosen: show all")
    expect(chosen).to_be_visible()
    # Depth goes from 2 to 12.
    page.wait_for_function(
        "() => { const depths = [...document.querySelectorAll('.trials .table-row')]"
        ".map(row => Number(row.children[4].textContent));"
        " return depths.length > 0 && Math.max(...depths) <= 7; }"
    )
    expect(page).to_have_url(re.compile("brush=depth"))
    again = open_page(as_another(yard, page.url))
    expect(again.get_by_role("button", name="chosen: show all")).to_be_visible()
    chosen.click()
    expect(page.get_by_role("region", name="Trials")).to_contain_text("31")


def test_a_new_result_appears_by_itself(yard: Yard, open_page: OpenPage) -> None:
    sweep = yard.sweep({**SEARCH, "method": "random", "name": "still going"})
    page = sweep_page(yard, open_page, sweep)
    expect(page.get_by_text("No trials yet")).to_be_visible()
    yard.work(sweep, 2, loss_of)
    expect(page.get_by_role("region", name="Progress")).to_contain_text("2 of 60")
    expect(page.get_by_role("grid", name="Trials").get_by_role("row")).to_have_count(3)


def test_a_sweep_is_steered_and_an_action_undone(yard: Yard, open_page: OpenPage) -> None:
    sweep = yard.sweep({**SEARCH, "method": "random", "name": "steered"})
    page = sweep_page(yard, open_page, sweep)

    def state() -> str:
        found: str = yard.connection.get(f"/api/sweeps/{sweep['key']}")["state"]
        return found

    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.get_by_text("Paused: what runs goes on")).to_be_visible()
    until(lambda: state() == "paused", "paused")
    page.get_by_role("button", name="Undo", exact=True).click()
    expect(page.get_by_role("button", name="Pause", exact=True)).to_be_visible()
    until(lambda: state() == "running", "running")

    page.get_by_role("button", name="change how many trials").click()
    page.get_by_label("At most this many trials").fill("12")
    page.get_by_role("button", name="Change", exact=True).click()
    expect(page.get_by_role("button", name="change how many trials")).to_have_text("Cap: 12")
    until(lambda: yard.connection.get(f"/api/sweeps/{sweep['key']}")["run_cap"] == 12, "the cap")

    page.get_by_role("button", name="Cancel", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("nothing is at work")
    page.get_by_role("button", name="Cancel the sweep", exact=True).click()
    expect(page.get_by_role("button", name="Resume", exact=True)).to_be_visible()
    until(lambda: state() == "canceled", "canceled")


def test_a_search_at_its_end_says_so_until_it_is_stopped(yard: Yard, open_page: OpenPage) -> None:
    line = {"x": {"min": 0.0, "max": 1.0}}
    config = {**SEARCH, "name": "at its end", "run_cap": 200, "parameters": line}
    sweep = yard.sweep(config)
    agent = yard.agent(sweep)

    def end_one() -> float:
        held = yard.claim(agent, wait=5)
        goal = {"val_loss": 1 + (held["trial"]["values"]["x"] - 0.3) ** 2}
        yard.log(held["run"], [goal])
        yard.summarise(held["run"], goal)
        yard.end(agent, held)
        return time.monotonic()

    def chance() -> Any:
        return yard.connection.get(f"/api/sweeps/{sweep['key']}")["chance"]

    ended = [end_one() for _ in range(55)][-1]

    def is_judged() -> bool:
        # The search judges when nothing else is asked of it: on a busy machine that is seldom.
        nonlocal ended
        if time.monotonic() > ended + 3:
            ended = end_one()
        return chance() is not None

    until(is_judged, "a judgement of the search")
    for theme, width in (("light", 1440), ("dark", 390)):
        page = sweep_page(yard, open_page, sweep, width=width, color_scheme=theme)
        told = page.get_by_text("Stop? No new setting is likely to beat the best by more than 1 %")
        expect(told).to_be_visible()
        expect(told).to_contain_text(re.compile(r"\(chance (under 0\.1|\d+\.\d) %\)"))
        expect(told).to_be_in_viewport(ratio=1)
        assert wide(page) == 0
        assert serious(page) == []
    page.get_by_role("button", name="Stop", exact=True).click()
    page.get_by_role("button", name="Stop the sweep", exact=True).click()
    expect(told).to_have_count(0)
    assert chance() is None


def test_two_aims_have_a_front(yard: Yard, open_page: OpenPage) -> None:
    sweep = yard.connection.get("/api/sweep", name="two aims")
    page = sweep_page(yard, open_page, sweep)
    front = page.get_by_role("region", name="Pareto front")
    expect(front).to_contain_text("that no other beats in val_loss and speed")
    scatter = page.get_by_role("region", name="Scatter")
    scatter.get_by_role("combobox", name="over").select_option("depth")
    expect(scatter.get_by_role("img", name="over depth")).to_be_visible()
    expect(page).to_have_url(re.compile("x=depth"))


def test_sweeps_of_a_project_are_listed(yard: Yard, open_page: OpenPage) -> None:
    page = show(yard, open_page, yard.me(), "birds", "sweeps")
    page.get_by_role("searchbox", name="Search sweeps").fill("search")
    expect(page.get_by_role("link", name="the search")).to_be_visible()
    expect(page.get_by_role("link", name="two aims")).to_have_count(0)
    page.get_by_role("link", name="the search").click()
    expect(page.get_by_role("heading", level=1, name="the search")).to_be_visible()


def test_a_sweep_is_made_of_a_pasted_file(yard: Yard, open_page: OpenPage) -> None:
    page = show(yard, open_page, yard.me(), "birds", "sweeps")
    page.get_by_role("button", name="New sweep", exact=True).click()
    page.get_by_label("The sweep's file").fill("method: grid\nparameters: {lr: {vals: [1]}}")
    page.get_by_role("button", name="Make the sweep", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("vals")
    page.get_by_label("The sweep's file").fill(
        "name: pasted\nprogram: train.py\nmethod: grid\nparameters: {lr: {values: [1, 2]}}"
    )
    page.get_by_role("button", name="Make the sweep", exact=True).click()
    expect(page.get_by_role("heading", level=1, name="pasted")).to_be_visible()
    expect(page.get_by_text("runyard sweep")).to_be_visible()


def test_jobs_say_why_they_wait_where_they_run_and_what_they_used(
    yard: Yard, open_page: OpenPage
) -> None:
    # Heard just now: an agent that is silent for a minute is not at work any more.
    yard.keep_busy(yard.sweep({**SEARCH, "method": "random", "name": "at work"}))
    page = show(yard, open_page, "jobs")
    waiting = page.get_by_role("article", name="Job 48220")
    expect(waiting).to_contain_text("others are before it in the queue")
    expect(waiting).to_contain_text("starts in")
    working = page.get_by_role("region", name="Agents at work")
    expect(working).to_contain_text("ng30203")
    expect(working).to_contain_text("at a time (more did not get more done)")
    expect(working).to_contain_text("71 %")
    past = page.get_by_role("article", name="Job 48101")
    expect(past).to_contain_text("9 GB of 33.6 GB")
    waiting.get_by_role("button", name="Cancel", exact=True).click()
    page.get_by_role("button", name="Cancel the job", exact=True).click()
    expect(waiting).to_contain_text("runyard cancel 48220")
    until(lambda: yard.connection.get("/api/job", name="48220")["wish"] == "cancel", "the wish")
    page.get_by_role("button", name="Undo", exact=True).click()
    expect(waiting.get_by_role("button", name="Cancel", exact=True)).to_be_visible()
    until(lambda: yard.connection.get("/api/job", name="48220")["wish"] is None, "the wish")


def test_a_jobs_log_is_read_searched_and_grows(yard: Yard, open_page: OpenPage) -> None:
    page = show(yard, open_page, "jobs")
    running = page.get_by_role("article", name="Job 48213")
    running.get_by_role("button", name="Log", exact=True).click()
    log = page.get_by_role("dialog", name="Log of job 48213")
    expect(log.locator(".console-line", has_text="node ng30201")).to_contain_text("48213_1")
    log.get_by_label("Search the output").fill("out of memory")
    expect(log.get_by_text("1 of 1")).to_be_visible()
    found = log.locator(".console-line.hit")
    expect(found).to_contain_text("48213_2")
    expect(found.locator(".ansi-1")).to_be_visible()
    log.get_by_label("Search the output").fill("")
    with (yard.home.path / "job logs/48213_3.log").open("a") as file:
        file.write("a new line\n")
    expect(log.get_by_text("a new line")).to_be_visible()
    log.get_by_label("Which task").select_option("2")
    expect(log.locator(".console-line", has_text="48213_1")).to_have_count(0)
    expect(page).to_have_url(re.compile("task=2"))
    page.reload()
    expect(log.locator(".console-line", has_text="48213_2").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(log).to_have_count(0)
    # Where the server does not see the files, the command is said.
    past = page.get_by_role("article", name="Job 48101")
    past.get_by_role("button", name="Log", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("does not see /scratch/ada")
    expect(page.get_by_role("dialog")).to_contain_text("runyard logs 48101")


def test_what_failed_in_a_job_is_retried_from_the_page(yard: Yard, open_page: OpenPage) -> None:
    sweep = yard.sweep({**SEARCH, "method": "random", "name": "failing", "run_cap": 6})
    yard.connection.post(
        "/api/jobs", {"job_id": "500", "kind": "agents", "name": "failing", "sweep": sweep["key"]}
    )
    yard.work(sweep, 6, loss_of, job="500")  # One of them fails.
    page = show(yard, open_page, "jobs")
    job = page.get_by_role("article", name="Job 500", exact=True)
    job.get_by_role("button", name="Retry 1 failed", exact=True).click()
    told = page.get_by_role("dialog", name="1 trial wait")
    expect(told).to_contain_text(f"runyard agents add {sweep['id']} --on slurm")
    assert yard.connection.get(f"/api/sweeps/{sweep['key']}")["counts"]["waiting"] == 1
    page.keyboard.press("Escape")
    expect(job.get_by_role("button", name="Retry 1 failed", exact=True)).to_have_count(0)


def test_a_run_shows_its_jobs_script_and_environment(
    yard: Yard, open_page: OpenPage, search: Any
) -> None:
    trial = yard.connection.get(f"/api/sweeps/{search['key']}/trials", state="finished")[0]
    page = show(yard, open_page, yard.me(), "birds", "runs", trial["id"], "overview")
    card = page.get_by_role("region", name="Job", exact=True)
    expect(card).to_contain_text("48213_2")
    expect(card).to_contain_text("cuda/12.2")
    card.get_by_role("button", name="Script", exact=True).click()
    expect(card.get_by_label("Script", exact=True)).to_contain_text("#SBATCH --time=1-00:00:00")
    attempts = page.get_by_role("region", name="Attempts")
    expect(attempts).to_contain_text("on ng30202, job 48213_2")
    expect(page.get_by_role("link", name="the search", exact=True)).to_be_visible()
    card.get_by_role("link", name="Log", exact=True).click()
    expect(page.get_by_role("dialog", name="Log of job 48213")).to_contain_text("48213_2")


def test_who_submitted_nothing_is_told_what_the_page_of_jobs_would_show(
    yard: Yard, open_page: OpenPage
) -> None:
    made = yard.connection.post("/api/users", {"name": "newcomer"})
    with closing(Api(Connection(yard.url, made["key"]))) as theirs:
        code = theirs.login_code()["code"]
    page = open_page(f"{yard.url}/jobs#code={code}")
    expect(page.get_by_text("Nothing has been submitted to Slurm yet")).to_be_visible()
    expect(page.get_by_text("runyard submit -- python train.py")).to_be_visible()


def test_a_report_is_written_linked_and_saved_as_one_file(
    yard: Yard, open_page: OpenPage, tmp_path: Any
) -> None:
    page = open_page(login_link(yard.home, f"{yard.me()}/birds/reports"))
    page.get_by_role("button", name="New report", exact=True).click()
    page.get_by_label("Title").fill("What <b>won</b>")
    notes = (
        "## Adam\n\nIt **wins** at `1e-3`.\n\n- [here](javascript:alert(1))\n\n<script>x</script>"
    )
    page.get_by_label("Notes, in Markdown").fill(notes)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("heading", name="What <b>won</b>")).to_be_visible()
    expect(page.locator(".markdown strong")).to_have_text("wins")
    assert page.locator(".markdown a").count() == 0, "a script is no link"
    expect(page.get_by_role("region", name="Chart of val_loss")).to_be_visible()

    with page.expect_download() as saving:
        page.get_by_role("button", name="HTML", exact=True).click()
    file = tmp_path / "report.html"
    saving.value.save_as(file)
    text = file.read_text()
    assert "http" not in text.replace("http://www.w3.org/2000/svg", ""), "it needs nothing else"
    numbers = text.partition('id="numbers">')[2].partition("</script>")[0]
    assert json.loads(numbers)["val_loss"][0]["y"]
    offline = open_page(file.as_uri())
    expect(offline.get_by_role("heading", name="What <b>won</b>")).to_be_visible()
    expect(offline.locator("figure svg path").first).to_be_attached()
    assert offline.locator("script:not([type='application/json'])").count() == 0

    other = open_page(as_another(yard, page.url))
    expect(other.get_by_role("heading", name="What <b>won</b>")).to_be_visible()


def test_below_a_proxy_that_holds_streams_back(
    yard: Yard, open_page: OpenPage, search: Any
) -> None:
    with proxy(yard.url, "/node/gpu7/8123") as base:
        path = f"{yard.me()}/birds/sweeps/{search['id']}"
        page = open_page(login_link(yard.home, path, base))
        expect(page.get_by_role("region", name="Progress")).to_contain_text("of 60")
        expect(page.get_by_role("img", name="over")).not_to_have_count(0)
        page.get_by_role("link", name="Jobs", exact=True).click()
        job = page.get_by_role("article", name="Job 48213")
        job.get_by_role("button", name="Log", exact=True).click()
        expect(page.get_by_role("dialog")).to_contain_text("48213_1")
        page.goto(f"{base}/{yard.me()}/birds/reports")
        page.get_by_role("button", name="New report", exact=True).click()
        page.get_by_label("Title").fill("below a path")
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.get_by_role("heading", name="below a path")).to_be_visible()
        expect(page.get_by_role("region", name="Chart of val_loss")).to_be_visible()
        assert page.url.startswith(f"{base}/{yard.me()}/birds/reports/")


def is_in_order(page: Page, column: str) -> bool:
    heads = page.get_by_role("columnheader").all_inner_texts()
    place = next(place for place, head in enumerate(heads) if column in head)
    rows = page.get_by_role("row").all()[1:6]
    texts = [row.get_by_role("gridcell").nth(place).inner_text() for row in rows]
    numbers = [float(text) for text in texts if text[-1:].isdigit()]
    return len(numbers) == 5 and numbers == sorted(numbers)


def test_rows_that_fly_past_say_who_they_are_and_are_whole_when_they_rest(
    yard: Yard, open_page: OpenPage
) -> None:
    link = login_link(yard.home, f"{yard.me()}/birds?panel=runs&sort=summary.val_loss")
    page = open_page(link, height=500)
    expect(page.get_by_role("columnheader", name="val_loss (best)")).to_be_visible()
    # On a busy machine, the rows were there for a while before they were in order.
    until(lambda: is_in_order(page, "val_loss (best)"), "rows in order")
    flying: list[list[str]] = page.evaluate(
        """() => new Promise((done) => {
          const table = document.querySelector('.table');
          const words = (row) => [...row.children].map((one) => one.textContent);
          const look = () => done([...document.querySelectorAll('.flying-row')].map(words));
          table.addEventListener('scroll', look, { once: true });
          table.scrollTop = 800;
        })"""
    )
    name, loss = flying[10]
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name=name, exact=True))
    expect(row).to_contain_text(loss)
    expect(row.get_by_role("checkbox")).to_be_visible()
    expect(page.locator(".flying-row")).to_have_count(0)


@pytest.mark.parametrize(("theme", "width"), [("light", 1440), ("dark", 390)])
def test_pages_can_be_used_by_everybody_and_on_a_phone(
    yard: Yard, open_page: OpenPage, search: Any, theme: str, width: int
) -> None:
    birds = f"{yard.me()}/birds"
    report = yard.connection.post(
        f"/api/projects/{birds}/reports", {"title": "a", "notes": "# b\n\n[c](https://d.example)"}
    )
    two = yard.connection.get("/api/sweep", name="two aims")
    trial = yard.connection.get(f"/api/sweeps/{search['key']}/trials", state="finished")[0]
    yard.log_system(yard.api.run(f"birds/{trial['id']}"))
    job = yard.connection.get("/api/job", name="48213")
    page = sweep_page(yard, open_page, search, width=width, color_scheme=theme)
    places = {
        f"{birds}/sweeps/{search['id']}": page.locator(".axis").first,
        f"{birds}/sweeps/{search['id']}?brush=depth~0~0.4": page.get_by_text("chosen: show all"),
        f"{birds}/sweeps/{two['id']}": page.get_by_role("region", name="Pareto front"),
        f"{birds}/sweeps": page.get_by_role("link", name="the search"),
        "jobs": page.get_by_role("article", name="Job 48213"),
        f"jobs?log={job['key']}": page.locator(".console-line").first,
        f"{birds}/runs/{trial['id']}/overview": page.get_by_role("region", name="Attempts"),
        f"{birds}/runs/{trial['id']}/system": page.locator(".u-over").first,
        f"{birds}/reports": page.get_by_role("button", name="New report"),
        f"{birds}/reports/{report['id']}": page.get_by_role("heading", name="b", exact=True),
        f"{birds}/reports/{report['id']}?edit=1": page.get_by_label("Notes, in Markdown"),
    }
    found = {}
    for path, shown in places.items():
        page.goto(f"{yard.url}/{path}")
        expect(shown).to_be_visible()
        expect(page.locator(".spinner")).to_have_count(0)
        found[path] = serious(page)
        assert wide(page) == 0, f"{path} is wider than the window"
    assert {path: trouble for path, trouble in found.items() if trouble} == {}
