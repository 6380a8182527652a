"""`runyard report` as it is typed: on sweeps, jobs and projects, and where there is nothing yet."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from runyard.cli.main import main
from runyard.home import Home
from runyard.shapes.sweeps import Sweep
from tests.conftest import run_runyard
from tests.page.yard import SEARCH, Yard, loss_of, open_yard

pytestmark = pytest.mark.live

GIB = 1 << 30


@dataclass(frozen=True)
class Told:
    """A server with one sweep of twelve trials in a job that is over, and one that still runs."""

    yard: Yard
    sweep: Sweep
    running: Sweep


@pytest.fixture(scope="module")
def told(module_home: Home) -> Told:
    random.seed(3)
    yard = open_yard(module_home)
    sweep = yard.sweep({**SEARCH, "method": "random", "run_cap": 12})
    agent = yard.agent(sweep, host="gpu014", node="ng1", job="48213_1")
    for number in range(12):
        held = yard.claim(agent)
        here = {"trial": held["trial"]["number"], "attempt": held["attempt"]}
        usage = {"cpu_seconds": 2.0, "memory_peak": 2 * GIB, "vram_total": 80 * GIB,
                 "vram_peak": 9 * GIB, "gpu": "GPU-a", "gpu_use": 0.4}  # fmt: skip
        yard.connection.post(f"/api/agents/{agent}/renew", {"running": [{**here, "usage": usage}]})
        if number == 4:
            yard.end(agent, held, 3, "program")
            continue
        goal = loss_of(held["trial"]["values"])
        yard.log(held["run"], [goal])
        yard.summarise(held["run"], goal)
        yard.end(agent, held)
    yard.connection.post(f"/api/agents/{agent}/leave", {"why": "done"})
    _record(yard, sweep)
    running = yard.sweep({**SEARCH, "name": "still at it", "method": "random"}, "plants")
    yard.keep_busy(running)
    return Told(yard, sweep, running)


def _record(yard: Yard, sweep: Any) -> None:
    now = time.time()
    asked = {"gpus": 1, "gpu_type": "a100", "cpus": 8, "memory": 32 * 1024, "time": 86400}
    made = yard.connection.post(
        "/api/jobs",
        {"cluster": "elsewhere", "job_id": "48213", "kind": "agents", "name": "birds", "tasks": 1,
         "sweep": sweep["key"], "asked": asked, "submitted_at": now - 9000},
    )  # fmt: skip
    used = {"tasks": 1, "seconds": 7200, "longest_seconds": 7200, "cpu_seconds": 9360,
            "cpu_seconds_held": 57600, "gpu_seconds_held": 7200, "memory_peak": int(4.9 * GIB),
            "accounted_at": now}  # fmt: skip
    news = {"key": made["key"], "polled_at": now, "states": {"COMPLETED": 1},
            "started_at": now - 8000, "ended_at": now - 800, "used": used}  # fmt: skip
    yard.connection.post("/api/jobs/news", {"news": [news]})


@dataclass(frozen=True)
class Said:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


Type = Callable[..., Said]


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str]) -> Type:
    """Types `runyard report ...`, in this process: there are many."""

    def typed(*words: str) -> Said:
        code = main(["report", *words])
        return Said(code, *capsys.readouterr())

    return typed


def _data(said: Said) -> Any:
    assert said.code == 0, said.err
    return json.loads(said.out)


def test_a_sweep_in_the_terminal(told: Told) -> None:
    done = run_runyard("report", told.sweep["id"])
    assert (done.returncode, done.stderr) == (0, "")
    assert max(len(line) for line in done.stdout.splitlines()) < 80
    assert "core-hours wasted      13.4 of 16.0" in done.stdout
    assert "ask --memory 6G instead of 32G" in done.stdout
    assert "the program failed" in done.stdout
    assert "val_loss went from" in done.stdout


def test_the_numbers_as_data(told: Told, report: Type) -> None:
    found = _data(report(told.sweep["id"], "--json"))
    [group] = found["jobs"]
    assert (group["source"], group["jobs"]) == (["accounting"], ["48213"])
    assert found["hours"]["cpu_held"] == 16
    assert found["hours"]["gpu_held"] == 2
    assert (group["vram_peak"], group["vram_total"]) == (9 * GIB, 80 * GIB)
    assert [(one["cause"], one["failed"]) for one in found["failures"]] == [("program", 1)]
    [sweep] = found["sweeps"]
    assert len(sweep["best"]) == 11
    assert sweep["importance"]["trials"] == 11
    assert len(found["trials"]) == 12
    assert {one["jobs"] for one in found["trials"]} == {"48213_1"}


def test_margins_are_those_of_the_project(
    told: Told, report: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "runyard.yaml").write_text("gauge: {memory_margin: 1.0}\n")
    monkeypatch.chdir(tmp_path)
    assert "ask --memory 10G instead of 32G" in report(told.sweep["id"]).out
    (tmp_path / "runyard.yaml").write_text("gauge: [what\n")
    assert "ask --memory 6G instead of 32G" in report(told.sweep["id"]).out


@pytest.mark.usefixtures("told")
def test_a_job_by_its_number_and_by_a_task(report: Type) -> None:
    for words in ("48213", "48213_1", "job:48213"):
        found = _data(report(words, "--json"))
        assert (found["kind"], found["title"]) == ("job", "job 48213 birds")
        assert len(found["trials"]) == 12
        assert [one["cause"] for one in found["failures"]] == ["program"]


def test_a_project_and_its_sweeps(told: Told, report: Type) -> None:
    for words in (("--project", "birds"), ("project:birds",), ("birds",),
                  ("-P", f"{told.yard.me()}/birds")):  # fmt: skip
        found = _data(report(*words, "--json"))
        assert (found["kind"], found["title"]) == ("project", "birds")
        assert [one["sweep"] for one in found["sweeps"]] == [told.sweep["id"]]
        assert found["hours"]["cpu_held"] == 16
    assert "SWEEPS" in report("-P", "birds").out


@pytest.mark.usefixtures("told")
def test_what_still_runs_is_said_to(report: Type) -> None:
    newest = report()
    assert newest.code == 0
    assert newest.out.startswith("still at it\n")
    assert "Still running: 0 of 60 trials have ended" in newest.out
    assert "No trial has a value of val_loss" in newest.out


def test_files_of_two_forms(told: Told, report: Type, tmp_path: Path) -> None:
    page, plot = tmp_path / "a.html", tmp_path / "b.svg"
    done = report(told.sweep["id"], "-o", str(page), "-o", str(plot), "--json")
    assert f"wrote {page}" in done.err
    assert json.loads(done.out)["kind"] == "sweep"
    assert page.read_text().startswith("<!doctype html>")
    assert "What val_loss depends on" in plot.read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nothing like it",), "there is no sweep, trial or job"),
        (("--project", "nowhere"), "projects: "),
        (("birds", "--project", "birds"), "a report is of one thing"),
        (("-o", "report.docx"), "does not say which form it is"),
        (("--plot", "hours"), "--plot is for pictures"),
        (("-o", "a.svg", "--plot", "pie"), "plots: resources, hours"),
    ],
)
@pytest.mark.usefixtures("told")
def test_mistakes_are_told_with_what_to_do(report: Type, words: tuple[str, ...], said: str) -> None:
    done = report(*words)
    assert done.code in (1, 2)
    assert done.out == ""
    assert said in done.err
    assert "  try:  " in done.err


def test_a_trial_is_sent_to_its_sweep(told: Told, report: Type) -> None:
    run = told.yard.api.sweeps.trials(told.sweep["key"])[0]["id"]
    done = report(run)
    assert done.code == 2
    assert f"runyard report {told.sweep['id']}" in done.err


def test_names_are_completed(told: Told) -> None:
    from runyard.cli.watching.report import _complete

    assert told.sweep["id"] in _complete(told.sweep["id"][:3])
    assert _complete("482") == ["48213"]
    assert "birds" in _complete("bir")


@pytest.mark.usefixtures("state_folder")
def test_before_the_first_sweep_it_says_how_to_make_one(report: Type) -> None:
    done = report()
    assert (done.code, done.out) == (0, "")
    assert "no sweeps yet: `runyard sweep sweep.yaml` makes one" in done.err


def test_help_loads_nothing_that_draws() -> None:
    code = "import sys, runyard.cli.watching.report; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert loaded.isdisjoint({"PIL", "numpy", "runyard.report.plots", "runyard.report.findings"})
