"""Pictures of the pages:  python -m tests.page.pictures FOLDER [--all]

Those for the documents; with --all every page, wide, narrow and at 200 %, light and dark, to be
looked at.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from runyard.home import Home
from tests.conftest import end_server
from tests.page.chromium import launch_chromium
from tests.page.conftest import login_link
from tests.page.gallery import PROJECT as GALLERY
from tests.page.gallery import log_gallery
from tests.page.training import PROJECT, train
from tests.page.yard import SEARCH, TWO_AIMS, Yard, loss_of, open_yard, record_jobs, trade_off

NOTES = """The search over five settings, in one line: **Adam at 1e-3**.

- depth hardly matters between five and eight layers
- dropout does nothing here

| setting | val_loss |
| --- | --- |
| best | 0.41 |
| what we had | 0.58 |
"""
WIDE, NARROW = 1440, 390
# A browser at 200 % has half as many pixels of CSS.
SIZES = ((str(WIDE), WIDE, 900, 1), (str(NARROW), NARROW, 844, 1), ("200%", WIDE // 2, 450, 2))
TABS = ("charts", "overview", "console", "system", "media", "files", "artifacts", "versus")


@dataclass(frozen=True)
class Shot:
    """A page by the name of its picture; `height` of the picture for the documents, if it is one.

    `found` is what stands on it when all of it is there.
    """

    name: str
    path: str
    found: str = "main"
    height: int | None = None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--all", action="store_true")
    given = parser.parse_args()
    given.folder.mkdir(exist_ok=True)
    random.seed(3)
    with tempfile.TemporaryDirectory() as state:
        home = Home(Path(state) / "state")
        empty = Home(Path(state) / "empty")
        os.environ["RUNYARD_HOME"] = str(home.path)  # `runyard run` is to find it.
        os.environ["RUNYARD_LEASE_SECONDS"] = "3600"  # Nobody renews what is at work here.
        try:
            yard = open_yard(home)
            shots = fill(yard, Path(state))
            with sync_playwright() as playwright:
                browser = launch_chromium(playwright)
                if given.all:
                    photograph_all(browser, yard, shots, given.folder)
                    photograph_all(browser, open_yard(empty), list(without_data()), given.folder)
                else:
                    photograph_for_documents(browser, yard, shots, given.folder)
                browser.close()
        finally:
            end_server(home)
            end_server(empty)


def fill(yard: Yard, folder: Path) -> list[Shot]:
    """A server with everything in it; its pages."""
    train(yard.home, folder)
    log_gallery(yard.home, folder, "everything")
    log_gallery(yard.home, folder, "another", shift=2)
    sweep = yard.sweep({**SEARCH, "method": "random"})
    record_jobs(yard, sweep)
    yard.work(sweep, 46, loss_of, stop=0.25, job="48213_2", node="ng30202")
    yard.keep_busy(sweep, 2)
    two = yard.sweep(TWO_AIMS)
    yard.work(two, 20, trade_off)
    me = yard.me()
    report = yard.connection.post(
        f"/api/projects/{me}/birds/reports",
        {"title": "Which optimizer?", "notes": NOTES, "view": {"query": "group=config.optimizer"}},
    )
    trial = yard.connection.get(f"/api/sweeps/{sweep['key']}/trials", state="finished")[0]
    job = yard.connection.get("/api/job", name="48213")
    failed = yard.api.run(f"{PROJECT}/colours")
    run = f"{me}/{PROJECT}/runs/run0"
    return [
        Shot("projects", "", ".project-card, .card", 420),
        Shot("project", f"{me}/{PROJECT}", ".u-over", 800),
        Shot("project-many", f"{me}/birds", ".u-over"),
        *(Shot(f"run-{tab}", f"{run}/{tab}") for tab in TABS),
        Shot("media", f"{me}/{GALLERY}/runs/everything/media", ".picture img, main img", 1900),
        Shot("media-project", f"{me}/{GALLERY}?panel=charts"),
        Shot("run-console-long", f"{me}/{PROJECT}/runs/{failed['id']}/console", ".console-line"),
        Shot("run", f"{me}/birds/runs/{trial['id']}/overview", "[aria-label=Job]", 900),
        Shot("sweep", f"{me}/birds/sweeps/{sweep['id']}", "[aria-label=Trials]", 1180),
        Shot("sweep-two", f"{me}/birds/sweeps/{two['id']}", "[aria-label=Trials]"),
        Shot("sweeps", f"{me}/birds/sweeps"),
        Shot("jobs", "jobs", "article", 760),
        Shot("job-log", f"jobs?log={job['key']}", ".console-line", 520),
        Shot("reports", f"{me}/birds/reports"),
        Shot("report", f"{me}/birds/reports/{report['id']}", ".u-over", 800),
        Shot("error-no-run", f"{me}/{PROJECT}/runs/nobody", ".state h2"),
        Shot("error-no-page", "a/b/c/d/e", ".state h2"),
    ]


def without_data() -> Iterator[Shot]:
    for name, path in (("projects", ""), ("jobs", "jobs")):
        yield Shot(f"empty-{name}", path)


def photograph_for_documents(browser: Browser, yard: Yard, shots: list[Shot], folder: Path) -> None:
    context = logged_in(browser, yard, WIDE, "light")
    for shot in shots:
        if shot.height is not None:
            page = show(context, yard, shot, shot.height)
            file = folder / f"page-{shot.name}.png"
            page.screenshot(path=file)
            page.close()
            shrink(file)
    narrow = logged_in(browser, yard, NARROW, "dark")
    for shot in shots:
        if shot.name in ("sweep", "jobs"):
            page = show(narrow, yard, shot, 844)
            file = folder / f"page-{shot.name}-narrow.png"
            page.screenshot(path=file)
            page.close()
            shrink(file)


def shrink(file: Path) -> None:
    """Flat colours: a palette is enough, and a quarter of the size."""
    with Image.open(file) as picture:
        picture.convert("RGB").quantize(224, kmeans=2, dither=Image.Dither.NONE).save(
            file, optimize=True
        )


def photograph_all(browser: Browser, yard: Yard, shots: list[Shot], folder: Path) -> None:
    for name, width, height, scale in SIZES:
        for scheme in ("light", "dark"):
            stranger = browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme=scheme,
                device_scale_factor=scale,
            )
            login = stranger.new_page()
            login.goto(yard.url)
            login.wait_for_timeout(500)
            login.screenshot(path=folder / f"login-{name}-{scheme}.png")
            stranger.close()
            context = logged_in(browser, yard, width, scheme, scale)
            for shot in shots:
                page = show(context, yard, shot, height)
                page.screenshot(
                    path=folder / f"{shot.name}-{name}-{scheme}.png", full_page=width == NARROW
                )
                page.close()
            context.close()


def logged_in(
    browser: Browser, yard: Yard, width: int, scheme: str, scale: int = 1
) -> BrowserContext:
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        device_scale_factor=scale,
        color_scheme=scheme,  # type: ignore[arg-type]
    )
    context.set_default_timeout(120_000)
    page = context.new_page()
    page.goto(login_link(yard.home))
    page.locator(".bar").wait_for()
    page.close()
    return context


def show(context: BrowserContext, yard: Yard, shot: Shot, height: int) -> Page:
    page = context.new_page()
    size = page.viewport_size
    assert size is not None
    page.set_viewport_size({"width": size["width"], "height": height})
    page.goto(f"{yard.url}/{shot.path}")
    page.locator(shot.found).first.wait_for()
    expect(page.locator(".spinner")).to_have_count(0, timeout=120_000)
    page.wait_for_timeout(1_500)  # Curves are fetched when their charts are seen.
    return page


if __name__ == "__main__":
    main()
