"""Seeds, once more, at a glance, merged logs, agents, and sweeps inside a program: all for real."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runyard.home import Home
from tests.conftest import run_runyard
from tests.live.sweeping import agents_of, api_of, processes_of, with_python
from tests.live.test_farm import begun, newest
from tests.node.terminals import PATIENCE, until

pytestmark = pytest.mark.live

LONG = 120.0  # A guard against a hang, never a measure.
TRAIN = """\
import argparse, wandb
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--seed", type=int)
args = parser.parse_args()
run = wandb.init(config=vars(args))
run.config.update({"task": "digits"}, allow_val_change=True)
run.log({"loss": args.lr + args.seed})
run.finish()
"""


@pytest.fixture(autouse=True)
def _one_server(module_home: Home) -> None:
    """All tests of this module share a server."""


def status(*words: str) -> dict[str, Any]:
    told = run_runyard("status", "--json", *words)
    assert told.returncode == 0, told.stderr
    found: dict[str, Any] = json.loads(told.stdout)
    return found


def test_one_command_with_several_seeds(module_home: Home, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    ended = run_runyard(
        "repeat", "--seeds", "1..3", "-j", "2", "--metric", "loss", "--",
        "python", "train.py", "--lr", "0.5", cwd=tmp_path, env=with_python(), timeout=LONG,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "2.5 ± 1" in ended.stdout
    sweep = newest(module_home)
    best = run_runyard("show", sweep["id"], "--best")
    assert "2.5 ± 1" in best.stdout
    assert "seed1 (+2)" in best.stdout
    runs = [api_of(module_home).run(one["id"]) for one in
            api_of(module_home).sweeps.trials(sweep["key"])]  # fmt: skip
    assert sorted(run["config"]["seed"] for run in runs) == [1, 2, 3]
    # What the program says of itself is not overruled by the list.
    assert {run["config"]["task"] for run in runs} == {"digits"}

    # Once more: the same command, a new run.
    again = run_runyard("retry", runs[0]["id"], cwd=module_home.path, env=with_python(),
                        timeout=LONG)  # fmt: skip
    assert again.returncode == 0, again.stderr
    [trial] = api_of(module_home).sweeps.trials(newest(module_home)["key"])
    assert trial["id"] != runs[0]["id"]
    once_more = api_of(module_home).run(trial["id"])
    assert once_more["summary"]["loss"] == runs[0]["summary"]["loss"]
    assert once_more["project"] == runs[0]["project"]


def test_a_trial_that_failed_is_run_once_more_as_a_new_run(
    module_home: Home, tmp_path: Path
) -> None:
    trials = api_of(module_home).sweeps.trials
    (tmp_path / "tasks.txt").write_text("echo it broke; exit 4\n")
    assert run_runyard("farm", "tasks.txt", cwd=tmp_path, timeout=LONG).returncode == 1
    sweep = newest(module_home)
    [failed] = trials(sweep["key"])
    text = run_runyard("show", failed["id"]).stdout
    assert "  echo it broke; exit 4\n" in text
    shown = run_runyard("retry", failed["id"], "--new-run", "--dry-run", "--json", cwd=tmp_path)
    assert [task["command_line"] for task in json.loads(shown.stdout)] == ["echo it broke; exit 4"]
    assert newest(module_home)["id"] == sweep["id"]

    again = run_runyard("retry", failed["id"], "--new-run", cwd=tmp_path, timeout=LONG)
    assert again.returncode == 1, again.stderr
    assert f"run {failed['id']} once more: echo it broke; exit 4\n" in again.stderr
    made = newest(module_home)
    assert made["id"] != sweep["id"]
    [trial] = trials(made["key"])
    assert (trial["id"] != failed["id"], trial["state"], trial["exit_code"]) == (True, "failed", 4)
    # The trial itself is left as it was.
    [same] = trials(sweep["key"])
    assert (same["id"], same["attempts"]) == (failed["id"], failed["attempts"])


def test_seeds_stand_where_the_command_says(tmp_path: Path) -> None:
    shown = run_runyard("repeat", "--seeds", "4,7", "--dry-run", "--json", "--", "echo",
                        "rng={seed}", cwd=tmp_path)  # fmt: skip
    assert [one["command_line"] for one in json.loads(shown.stdout)] == [
        "echo rng=4", "echo rng=7"
    ]  # fmt: skip
    for wrong in (("--seeds", "x", "--", "echo"), ("--seeds", "0", "--", "echo"), ()):
        refused = run_runyard("repeat", *wrong, cwd=tmp_path)
        assert refused.returncode == 2
        assert "try:" in refused.stderr


def test_all_at_a_glance_and_one_trial_ended(module_home: Home, tmp_path: Path) -> None:
    (tmp_path / "tasks.txt").write_text(
        "echo it broke; exit 4\nuntil test -e go1; do sleep 0.05; done; echo one\n"
        "until test -e go2; do sleep 0.05; done\n"
    )
    with begun("farm", "tasks.txt", "-j", "2", "-e", "glance", cwd=tmp_path) as farm:
        until(lambda: len(processes_of(module_home, "test -e go")) == 2, "both lines")
        [found] = [one for one in status()["sweeps"] if one["name"] == "glance"]
        assert found["counts"]["running"] == 2
        assert found["failures"][0]["why"] == "exit code 4: it broke"
        shown = run_runyard("status", "glance").stdout
        for part in ("list  running  1/3", "2 of 2 slots at work", "exit code 4: it broke"):
            assert part in shown
        listed = json.loads(run_runyard("agents", "--json").stdout)
        assert [one["slots"] for one in listed if one["sweep"] == found["id"]] == [2]

        assert run_runyard("cancel", "line3").returncode == 0
        until(lambda: not processes_of(module_home, "test -e go2"), "the trial's end")
        (tmp_path / "go1").touch()
        assert farm.wait(PATIENCE) == 1
    counts = status("glance")["sweeps"][0]["counts"]
    assert (counts["finished"], counts["failed"], counts["stopped"]) == (1, 1, 1)
    logs = run_runyard("logs", "glance").stdout
    assert logs == "line1\tit broke\nline2\tone\n"
    assert run_runyard("logs", "glance", "-f").stdout == logs
    assert "memory" in run_runyard("retry", "glance", "--cause", "memory").stderr
    assert "did you mean line1?" in run_runyard("retry", "glance", "--trial", "lin1").stderr


def test_agents_come_and_go(module_home: Home, tmp_path: Path) -> None:
    lines = "until test -e go; do sleep 0.05; done\n" * 4
    (tmp_path / "tasks.txt").write_text(lines)
    made = run_runyard("farm", "tasks.txt", "--no-run", "--json", cwd=tmp_path)
    sweep = json.loads(made.stdout)
    assert run_runyard("agents", "add", sweep["id"], "-j", "2", cwd=tmp_path).returncode == 0
    until(lambda: len(processes_of(module_home, "test -e go")) == 2, "two lines at work")
    [agent] = api_of(module_home).sweeps.sweep(sweep["key"])["agents"]
    drained = run_runyard("agents", "drain", str(agent["key"]))
    assert drained.returncode == 0, drained.stderr
    (tmp_path / "go").touch()
    until(lambda: not agents_of(module_home), "the agent's end")
    # It finished what it ran, and began no more.
    assert api_of(module_home).sweeps.sweep(sweep["key"])["counts"]["finished"] == 2
    assert "nobody works on it" in run_runyard("status", sweep["id"]).stdout
    ended = run_runyard("cancel", sweep["id"], "--json")
    assert json.loads(ended.stdout)["state"] == "canceled"
    assert run_runyard("agents", "drain", str(agent["key"])).returncode == 1
    assert run_runyard("agents", "add", sweep["id"]).returncode == 2


def test_a_sweep_inside_a_program(module_home: Home, tmp_path: Path) -> None:
    (tmp_path / "inside.py").write_text(
        "import runyard, sys, wandb\n"
        "assert 'wandb' in sys.modules and 'runyard.client' not in sys.modules\n"
        "def train():\n"
        "    with wandb.init() as run:\n"
        "        run.log({'loss': run.config.lr * 2})\n"
        "config = {'method': 'grid', 'metric': {'name': 'loss'},\n"
        "          'parameters': {'lr': {'values': [3, 1, 2]}}}\n"
        "ended = runyard.sweep(config, train, count=2, project='inside')\n"
        "print('one', ended['counts']['finished'])\n"
        "config['command'] = ['sh', '-c', 'echo ${lr}']\n"
        "ended = runyard.sweep(config, slots=2, project='inside')\n"
        "print('two', ended['counts']['finished'], ended['state'])\n"
    )
    done = subprocess.run(
        [sys.executable, "inside.py"], cwd=tmp_path, capture_output=True, text=True, timeout=LONG,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "one 2\n" in done.stdout
    assert "two 3 finished\n" in done.stdout
