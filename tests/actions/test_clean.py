"""Old folders of jobs and calls go; those that something may still need stay."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard.actions.tidying.clean import clean_jobs
from runyard.cli.connect import server
from runyard.client.api import Api
from runyard.config.task_list import Line, make_tasks, sweep_config
from runyard.home import Home
from tests.conftest import run_runyard

DAY = 86_400.0
MONTHS_AGO = time.time() - 90 * DAY


@pytest.fixture(scope="module")
def api(module_home: Home) -> Iterator[Api]:
    found = server(module_home, quiet=True)
    yield found
    found.close()


def make_old(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "script.sh").write_text("true\n")
    for path in (folder / "script.sh", folder):
        os.utime(path, (MONTHS_AGO, MONTHS_AGO))
    return folder


def record(api: Api, home: Home, number: str, *, ended: bool, sweep: int | None = None) -> Path:
    folder = make_old(home.path / "jobs" / f"of-{number}")
    job = api.jobs.record(
        {"cluster": "narval", "job_id": number, "kind": "agents", "name": "farm",
         "submitted_at": MONTHS_AGO, "folder": str(folder), "sweep": sweep}
    )  # fmt: skip
    if ended:
        api.jobs.update(
            job["key"],
            {"polled_at": MONTHS_AGO, "states": {"COMPLETED": 1}, "ended_at": MONTHS_AGO},
        )
    return folder


def test_what_is_over_for_long_goes(api: Api, module_home: Home) -> None:
    home = module_home
    calls = [make_old(home.path / "calls" / name) for name in ("20260101-1-a", "20260101-1-b")]
    command = f"python -m runyard.scripting.run_call {calls[0]} 1"
    listed = sweep_config(make_tasks("submit", [Line(1, command)]), "/bin/sh")
    is_open = api.sweeps.create(listed, project="birds", name="open")
    over, runs, of_open = (
        record(api, home, "11", ended=True),
        record(api, home, "12", ended=False),
        record(api, home, "13", ended=True, sweep=is_open["key"]),
    )
    forgotten = make_old(home.path / "jobs" / "build-numpy-120000")
    young = make_old(home.path / "jobs" / "server-20260101")
    (young / "9.log").write_text("it still writes\n")
    gone = ["calls/20260101-1-b", "jobs/build-numpy-120000", "jobs/of-11"]

    shown = run_runyard("clean", "--jobs", "--dry-run", "--json")
    assert json.loads(shown.stdout) == gone
    assert over.is_dir()
    assert clean_jobs(api, home, days=365) == []
    assert clean_jobs(api, home, days=30) == gone
    assert not any(path.exists() for path in (over, forgotten, calls[1]))
    assert all(path.is_dir() for path in (runs, of_open, young, calls[0]))
    assert "nothing to remove" in run_runyard("clean", "--jobs").stderr
