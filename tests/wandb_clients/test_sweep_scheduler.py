"""`wandb sweep-scheduler` of the real client: an optimizer beside the agents chooses the trials."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import end_server, isolate
from tests.environments import Missing, skip_or_fail
from tests.wandb_clients.client import Client, Program
from tests.wandb_clients.environments import ensure_optimizers
from tests.wandb_clients.matrix import Session
from tests.wandb_clients.sweeping import runs_of, state_of

pytestmark = pytest.mark.clients

_VERSION = "0.31.0"
_PATIENCE = 300
_SOURCE = Path(__file__).parent / "flows" / "scheduler_source.py"
_SEARCH: dict[str, Any] = {
    "program": "sweep_trial",
    "metric": {"name": "loss", "goal": "minimize"},
    "parameters": {"lr": {"distribution": "uniform", "min": 0.1, "max": 1.0}, "own": {"value": 3}},
}


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    isolate(tmp_path, monkeypatch)
    try:
        python = ensure_optimizers(_VERSION)
    except Missing as missing:
        skip_or_fail(str(missing))
    session = Session(tmp_path)
    client = replace(session.client(_VERSION, "scheduled"), python=python)
    try:
        yield client
    finally:
        client.api.close()
        end_server(session.home)


def test_optuna_killed_and_started_again_runs_every_suggestion_once(client: Client) -> None:
    sweep = client.sweep(
        {**_SEARCH, "method": "custom", "scheduler": {"engine": "optuna"}, "run_cap": 4}
    )
    # Four: the last one ends the sweep, perhaps before a scheduler that was slow to start hears of
    # the one before.
    before = client.start_scheduler(sweep)
    try:
        before.wait_for("Enqueued run")
    finally:
        before.kill()
    with client.agent(sweep) as agent:
        agent.wait_until(lambda: "finished" in _states(client, sweep), _PATIENCE)
        after = client.start_scheduler(sweep)
        try:
            after.wait_for("loaded as finished")
            words = after.end()
        finally:
            after.clear_away()
            before.clear_away()
        agent.end()
    assert "the sweep is FINISHED" in words, words
    runs = {run["id"]: run for run in runs_of(client, sweep)}
    suggestions = _suggestions(before) | _suggestions(after)
    # One that was sent just before the kill was never spoken of.
    assert suggestions.keys() <= runs.keys()
    for name, config in suggestions.items():
        assert {key: runs[name]["config"][key] for key in config} == config
    assert len({run["config"]["lr"] for run in runs.values()}) == len(runs)
    finished = [run for run in runs.values() if run["state"] == "finished"]
    assert len(finished) == 4
    assert {run["state"] for run in runs.values()} <= {"finished", "killed"}
    # Optuna hears of what finished after the restart; the last one ends the sweep.
    assert re.search(r"Trial \d+ finished with value: 0\.\d+", words), words
    assert state_of(client, sweep) == "FINISHED"


def test_wandbs_own_engine_with_runyards_agent_to_the_end_of_a_grid(client: Client) -> None:
    sweep = client.sweep(
        {
            **_SEARCH,
            "method": "grid",
            "parameters": {"lr": {"values": [0.5, 0.25]}},
            "scheduler": {"engine": "wandb"},
        }
    )
    scheduler = client.start_scheduler(sweep)
    try:
        ours = subprocess.run(
            [sys.executable, "-m", "runyard", "sweep", sweep],
            env={**os.environ, "PATH": f"{client.python.parent}:{os.environ['PATH']}"},
            cwd=client.folder,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
        )
        assert ours.returncode == 0, ours.stdout + ours.stderr
        words = scheduler.end()
    finally:
        scheduler.clear_away()
    assert "the search space is exhausted" in words, words
    runs = runs_of(client, sweep)
    assert {run["state"] for run in runs} == {"finished"}
    assert sorted(run["config"]["lr"] for run in runs) == [0.25, 0.5]
    assert _suggestions(scheduler).keys() == {run["id"] for run in runs}
    assert state_of(client, sweep) == "FINISHED"


def test_a_search_space_of_ones_own_and_a_pruner(client: Client) -> None:
    sweep = client.sweep(
        {
            "program": "sweep_curve",
            "method": "custom",
            "metric": {"name": "loss", "goal": "minimize"},
            "scheduler": {
                "engine": "optuna",
                "source": str(_SOURCE),
                "search_space": "search_space",
                "optimizer": "optimizer",
            },
        }
    )
    scheduler = client.start_scheduler(sweep)
    try:
        with client.agent(sweep) as agent:
            words = scheduler.end()
            agent.end()
    finally:
        scheduler.clear_away()
    assert "Requesting early stop" in words, words
    states = {run["config"]["loss"]: run["state"] for run in runs_of(client, sweep)}
    assert states == {1: "finished", 2: "killed"}
    assert state_of(client, sweep) == "FINISHED"


def _states(client: Client, sweep: str) -> set[str]:
    return {run["state"] for run in runs_of(client, sweep)}


def _suggestions(scheduler: Program) -> dict[str, Any]:
    """What it says that it has sent: the config of each run."""
    said = re.findall(r"Enqueued run (\w+) with config (\{.*\})\.", scheduler.said())
    return {name: json.loads(config) for name, config in said}
