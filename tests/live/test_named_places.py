"""Project and entity that a program names: its run is there, and there alone, however it began.

The newest client; with RUNYARD_ALL_CLIENTS=1 also older ones, which ask in other ways.
"""

from __future__ import annotations

import getpass
import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest

from runyard.home import Home
from tests.conftest import run_runyard
from tests.environments import skip_or_fail
from tests.live.programs import curves
from tests.live.sweeping import api_of
from tests.wandb_clients.environments import MissingClient, ensure_environment

pytestmark = pytest.mark.live

VERSIONS = (
    ("0.31.0", "0.19.11", "0.15.12") if os.environ.get("RUNYARD_ALL_CLIENTS") else ("0.31.0",)
)
# Logs two rows an attempt at the place that its words name; asks to go on as often as it is told.
PROGRAM = """\
import json, os, sys, wandb
place = json.loads(sys.argv[1])
attempt = int(os.environ.get("RUNYARD_ATTEMPT", "1"))
run = wandb.init(**place)
for step in (0, 1):
    run.log({"row": 2 * attempt + step})
run.finish()
sys.exit(75 if attempt < int(sys.argv[2]) else 0)
"""
PLACES: dict[str, dict[str, str]] = {
    "neither": {},
    "project": {"project": "named"},
    "entity": {"entity": "crew"},
    "both": {"project": "named", "entity": "crew"},
}


@pytest.fixture(scope="module", params=VERSIONS)
def python(request: pytest.FixtureRequest, module_home: Home) -> str:
    """The Python of a client; and a team that its programs may write to."""
    if "crew" not in run_runyard("users", "teams", "list").stdout:
        assert run_runyard("users", "teams", "add", "crew").returncode == 0
    try:
        return str(ensure_environment(request.param))
    except MissingClient as missing:
        skip_or_fail(str(missing))


@pytest.fixture
def folder(tmp_path: Path, python: str) -> Path:
    folder = tmp_path / f"project-{os.urandom(4).hex()}"
    folder.mkdir()
    (folder / "train.py").write_text(PROGRAM)
    return folder


def words(python: str, place: str, attempts: int = 1) -> list[str]:
    # A project of this test alone: all tests of the module share a server.
    return [python, "train.py", json.dumps(PLACES[place]), str(attempts)]


def expected(folder: Path, place: str) -> tuple[str, str]:
    named = {"entity": getpass.getuser(), "project": folder.name, **PLACES[place]}
    return named["entity"], named["project"]


def known_runs(home: Home) -> set[int]:
    return {run["key"] for run in api_of(home).runs(limit=None)}


def new_runs(home: Home, before: set[int]) -> list[Any]:
    return [run for run in api_of(home).runs(limit=None) if run["key"] not in before]


def test_a_program_that_is_run_here(module_home: Home, folder: Path, python: str) -> None:
    before = known_runs(module_home)
    ended = run_runyard("run", "--", *words(python, "entity"), cwd=folder)
    assert ended.returncode == 0, ended.stderr
    (run,) = new_runs(module_home, before)
    assert (run["entity"], run["project"]) == expected(folder, "entity")
    assert (run["state"], run["steps"]) == ("finished", 2)


def test_each_program_of_a_list(module_home: Home, folder: Path, python: str) -> None:
    """What `submit` sends is such a list, of one program. Each is cut off once, and goes on."""
    before = known_runs(module_home)
    lines = [shlex.join(words(python, place, attempts=2)) for place in PLACES]
    (folder / "tasks.txt").write_text("\n".join(lines))
    ended = run_runyard("farm", "tasks.txt", "-j", "4", cwd=folder)
    assert ended.returncode == 0, ended.stderr
    assert "Ignoring" not in ended.stdout + ended.stderr
    runs = new_runs(module_home, before)
    where = sorted((run["entity"], run["project"]) for run in runs)
    assert where == sorted(expected(folder, place) for place in PLACES)
    for run in runs:
        assert run["state"] == "finished"
        assert curves(module_home, run["id"])["row"]["values"] == [2, 3, 4, 5]
    (sweep,) = api_of(module_home).sweeps.sweeps(limit=1)
    trials = api_of(module_home).sweeps.trials(sweep["key"])
    assert {trial["id"] for trial in trials} == {run["id"] for run in runs}
    # In their sweep's project too, where its page and what people remember of it lead to.
    for run in runs:
        assert api_of(module_home).run(f"{folder.name}/{run['id']}")["key"] == run["key"]
    assert len(json.loads(run_runyard("runs", "--sweep", sweep["id"], "--json").stdout)) == 4


def test_the_trials_of_a_search_stay_with_their_sweep(
    module_home: Home, folder: Path, python: str
) -> None:
    """As W&B has it: the client itself passes over what the program names."""
    before = known_runs(module_home)
    sweep = {"program": "train.py", "method": "grid", "parameters": {"x": {"values": [1]}},
             "command": words(python, "both")}  # fmt: skip
    (folder / "sweep.yaml").write_text(json.dumps(sweep))
    ended = run_runyard("sweep", "sweep.yaml", cwd=folder)
    assert ended.returncode == 0, ended.stderr
    (run,) = new_runs(module_home, before)
    assert (run["entity"], run["project"]) == expected(folder, "neither")


@pytest.mark.parametrize("options", [(), ("-P", "named")])
def test_the_same_id_again_goes_on_in_the_place_that_the_program_names(
    module_home: Home, folder: Path, python: str, options: tuple[str, ...]
) -> None:
    before = known_runs(module_home)
    run_id = f"again-{os.urandom(4).hex()}"
    for _ in range(2):
        ended = run_runyard("run", *options, "--", *words(python, "both"), cwd=folder,
                            env={"WANDB_RUN_ID": run_id})  # fmt: skip
        assert ended.returncode == 0, ended.stderr
    (run,) = new_runs(module_home, before)
    assert (run["entity"], run["project"], run["steps"]) == ("crew", "named", 4)


def test_two_runs_of_one_id_are_told_apart_by_their_entities(
    module_home: Home, folder: Path, python: str
) -> None:
    twice = "import wandb\nfor entity in (None, 'crew'): wandb.init(entity=entity).finish()\n"
    (folder / "train.py").write_text(twice)
    assert run_runyard("run", "--", python, "train.py", cwd=folder).returncode == 0
    run_id = api_of(module_home).runs(limit=1)[0]["id"]
    shown = run_runyard("show", run_id)
    assert shown.returncode != 0
    for entity in (getpass.getuser(), "crew"):
        place = f"{entity}/{folder.name}/{run_id}"
        assert place in shown.stderr
        assert run_runyard("show", place).returncode == 0
