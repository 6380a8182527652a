"""Pictures of the pages for the documents:  python -m tests.page.pictures docs"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from runyard.home import Home
from tests.conftest import end_server
from tests.page.chromium import require_chromium
from tests.page.conftest import login_link
from tests.page.yard import SEARCH, Yard, loss_of, open_yard, record_jobs

NOTES = """The search over five settings, in one line: **Adam at 1e-3**.

- depth hardly matters between five and eight layers
- dropout does nothing here

| setting | val_loss |
| --- | --- |
| best | 0.41 |
| what we had | 0.58 |
"""


def main(folder: Path) -> None:
    random.seed(3)
    with tempfile.TemporaryDirectory() as state:
        home = Home(Path(state) / "state")
        try:
            photograph(open_yard(home), folder)
        finally:
            end_server(home)


def photograph(yard: Yard, folder: Path) -> None:
    sweep = yard.sweep({**SEARCH, "method": "random"})
    yard.work(sweep, 46, loss_of, stop=0.25)
    yard.keep_busy(sweep, 2)
    record_jobs(yard, sweep)
    place = f"{yard.me()}/birds"
    report = yard.connection.post(
        f"/api/projects/{place}/reports",
        {"title": "Which optimizer?", "notes": NOTES, "view": {"query": "group=config.optimizer"}},
    )
    pages = {
        "page-sweep": (f"{place}/sweeps/{sweep['id']}", 1180),
        "page-jobs": ("jobs", 640),
        "page-report": (f"{place}/reports/{report['id']}", 760),
    }
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=require_chromium(), args=["--no-sandbox"]
        )
        for name, (path, height) in pages.items():
            page = browser.new_page(viewport={"width": 1280, "height": height})
            page.goto(login_link(yard.home, path))
            page.get_by_role("heading", level=1).wait_for()
            page.wait_for_timeout(2_500)  # Curves are fetched when their charts are seen.
            page.screenshot(path=folder / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
