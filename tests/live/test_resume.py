"""Runs that go on, are begun anew, rewound and forked, in separate processes."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest

from runyard.client.discover import ensure_server
from runyard.home import Home
from tests.conftest import run_runyard
from tests.live.programs import PYTHON, curves, stock_client, write_program

pytestmark = pytest.mark.live

LOG = """
import os, sys, wandb

def log(values, **how):
    run = wandb.init(**how)
    for value in values:
        print("value", value)
        run.log({"v": value, "half": {"of": value / 2}})
    return run
"""
FIRST = f"""{LOG}
run = log(range(4), id="goes-on", resume="allow", config={{"lr": 1}}, tags=["a"])
run.summary["once"] = 7
run.finish()
log(range(6), id="anew", config={{"old": 1}}).finish()
log(range(6), id="back").finish()
run = log(range(3), resume="auto", name="auto")
open("auto", "w").write(run.id)
import time; time.sleep(3)
os._exit(1)
"""
SECOND = f"""{LOG}
import json
seen = {{}}
run = log(range(500, 502), resume="auto")
seen["auto"] = [run.id, open("auto").read()]
run.finish()
run = log(range(100, 104), id="goes-on", resume="must", config={{"more": 2}})
seen["resumed"] = [run.resumed, run.tags, dict(run.config)]
run.finish()
log(range(200, 202), id="anew", config={{"new": 1}}).finish()
log(range(300, 302), resume_from="back?_step=2").finish()
log(range(400, 402), id="branch", fork_from="back?_step=1").finish()
for how, name in (("must", "missing"), ("never", "goes-on")):
    try:
        wandb.init(id=name, resume=how)
        seen[how] = "went on"
    except wandb.errors.UsageError as error:
        seen[how] = str(error)
open("seen.json", "w").write(json.dumps(seen))
"""


Yard = tuple[Home, dict[str, Any]]


@pytest.fixture(scope="module")
def yard(module_home: Home, tmp_path_factory: pytest.TempPathFactory) -> Yard:
    work = tmp_path_factory.mktemp("work")
    environment = {**os.environ, **stock_client(module_home), "WANDB_PROJECT": "birds"}
    for name, text, code in (("first.py", FIRST, 1), ("second.py", SECOND, 0)):
        program = write_program(work, text, name)
        done = subprocess.run(
            [PYTHON, program.name], cwd=program.parent, env=environment, timeout=180,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stderr
    return module_home, json.loads((work / "seen.json").read_text())


def _values(yard: Yard, run: str) -> tuple[list[float], list[float | None]]:
    series = curves(yard[0], run)["v"]
    return series["steps"], series["values"]


def _run(yard: Yard, run: str) -> Any:
    return ensure_server(yard[0]).api.run(run)


def test_resuming_goes_on(yard: Yard) -> None:
    assert _values(yard, "goes-on") == (list(range(8)), [0, 1, 2, 3, 100, 101, 102, 103])
    run = _run(yard, "goes-on")
    assert (run["state"], run["config"], run["tags"]) == ("finished", {"lr": 1, "more": 2}, ["a"])
    assert (run["summary"]["once"], run["summary"]["v"]) == (7, 103)
    resumed, tags, config = yard[1]["resumed"]
    assert (resumed, tags, config) == (True, ["a"], {"lr": 1, "more": 2})


def test_the_console_has_both_parts(yard: Yard) -> None:
    text = ensure_server(yard[0]).api.console(_run(yard, "goes-on"), 0)["text"]
    assert text.split("\n")[:8] == [f"value {n}" for n in (0, 1, 2, 3, 100, 101, 102, 103)]


def test_the_same_id_without_resuming_begins_anew(yard: Yard) -> None:
    assert _values(yard, "anew") == ([0, 1], [200, 201])
    run = _run(yard, "anew")
    assert (run["config"], run["summary"]["v"]) == ({"new": 1}, 201)
    assert [(one["reason"], one["steps"]) for one in run["archives"]] == [("restarted", 6)]


def test_what_was_overwritten_or_rewound_can_be_exported(yard: Yard) -> None:
    done = run_runyard("export", "anew", "back", "--archived", "--format", "jsonl")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["v"] for row in rows if row["run"] == "anew"] == list(range(6))
    assert [row["_step"] for row in rows if row["run"] == "back"] == [3, 4, 5]
    assert {(row["run"], row["archive"], row["reason"]) for row in rows} == {
        ("anew", 1, "restarted"),
        ("back", 1, "rewound"),
    }
    summary = run_runyard("export", "anew", "--archived", "--what", "summary", "--format", "jsonl")
    assert json.loads(summary.stdout)["v"] == 5
    assert "`runyard export anew --archived`" in run_runyard("show", "anew").stdout


def test_rewinding(yard: Yard) -> None:
    assert _values(yard, "back") == (list(range(5)), [0, 1, 2, 300, 301])
    run = _run(yard, "back")
    assert run["steps"] == 5
    assert [(one["reason"], one["steps"]) for one in run["archives"]] == [("rewound", 3)]


def test_forking(yard: Yard) -> None:
    assert _values(yard, "branch") == (list(range(4)), [0, 1, 400, 401])


def test_auto_finds_the_run_that_crashed(yard: Yard) -> None:
    found, crashed = yard[1]["auto"]
    assert found == crashed
    assert _values(yard, "auto") == (list(range(5)), [0, 1, 2, 500, 501])


def test_must_and_never_refuse(yard: Yard) -> None:
    assert "missing" in yard[1]["must"]
    assert "goes-on" in yard[1]["never"]
