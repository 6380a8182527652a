"""What `runyard sweep` says before anything is made: previews, and mistakes with their mends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runyard.cli.watching.sweep_view import live
from runyard.home import Home
from runyard.report.settings import Aim, ranked, settings_of
from runyard.shapes.sweeps import Sweep, Trial
from tests.conftest import RunRunyard

GRID: dict[str, Any] = {
    "program": "train.py",
    "method": "grid",
    "metric": {"name": "loss", "goal": "minimize"},
    "parameters": {"lr": {"values": [3e-3, 0.1]}, "bs": {"values": [16, 64, 256]}},
}


def write(folder: Path, name: str = "sweep.yaml", **changes: Any) -> Path:
    (folder / "train.py").touch()
    file = folder / name
    file.write_text(json.dumps({**GRID, **changes}))
    return file


def test_a_dry_run_shows_trials_and_makes_nothing(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    file = write(tmp_path, runyard={"seeds": 2})
    shown = runyard("sweep", file.name, "--dry-run", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "12 trials" in shown.stdout
    assert "lr3em3_bs16_seed0\n" in shown.stdout
    assert "python train.py --bs=16 --lr=0.003 --seed=1" in shown.stdout
    assert "... and 7 more" in shown.stdout
    assert not state_folder.path.exists()

    told = json.loads(runyard("sweep", str(file), "--dry-run", "--json").stdout)
    assert told["trials"] == 12
    assert told["folder"] == str(tmp_path)
    assert told["first"][0]["values"] == {"lr": 3e-3, "bs": 16, "seed": 0}


def test_the_command_line_changes_what_the_file_says(runyard: RunRunyard, tmp_path: Path) -> None:
    file = write(tmp_path)
    words = ("--run-cap", "3", "--method", "random", "--set", "bs=8", "--set", "runyard.seeds=3")
    told = json.loads(runyard("sweep", str(file), "--dry-run", "--json", *words).stdout)
    assert (told["method"], told["trials"]) == ("random", 3)
    assert {trial["values"]["bs"] for trial in told["first"]} == {8}
    assert [trial["values"]["seed"] for trial in told["first"]] == [0, 1, 2]


@pytest.mark.parametrize(
    ("words", "what", "mend"),
    [
        (["sweep.yml"], "there is no file sweep.yml", "there is sweep.yaml"),
        (["."], ". is a folder", "runyard sweep sweep.yaml"),
        (["sweep.yaml", "-j", "0"], "'0' is not a whole number, 1 or more", "--help"),
        (["sweep.yaml", "--method", "bays"], "--method cannot be 'bays'", "bayes"),
        (["sweep.yaml", "--set", "lr"], "--set lr says nothing to set", "--set"),
        (["sweep.yaml", "--pause", "--stop"], "not allowed with", "--help"),
        (["nothing", "--dry-run"], "--dry-run is for a sweep file", "runyard runs --sweeps"),
    ],
)
def test_mistakes_on_the_command_line(
    words: list[str], what: str, mend: str, runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    write(tmp_path)
    said = runyard("sweep", *words, cwd=tmp_path)
    assert said.returncode in (1, 2)
    assert what in said.stderr
    assert mend in said.stderr
    assert not state_folder.path.exists(), "nothing was started"


@pytest.mark.parametrize(
    ("changes", "what", "mend"),
    [
        ({"program": "trian.py"}, "names the program trian.py", "did you mean train.py?"),
        ({"command": ["pyhton", "${program}"]}, "begins with 'pyhton'", "environment is active"),
        ({"program": None}, "program", "add program: train.py"),
        ({"metric": {"name": "loss", "goal": "minimise"}}, "sweep.yaml:1", "minimize"),
        ({"parameters": {}}, "sweep.yaml:1", "parameters"),
    ],
)
def test_mistakes_in_the_file_are_told_before_anything_is_made(
    changes: dict[str, Any], what: str, mend: str, runyard: RunRunyard, state_folder: Home,
    tmp_path: Path,
) -> None:  # fmt: skip
    file = write(tmp_path, **changes)
    if changes.get("program", "") is None:
        file.write_text(json.dumps({k: v for k, v in GRID.items() if k != "program"}))
    said = runyard("sweep", file.name, cwd=tmp_path)
    assert said.returncode in (1, 2)
    assert what in said.stderr
    assert mend in said.stderr
    assert not state_folder.path.exists()


def test_a_program_beside_the_file_is_found_from_elsewhere(
    runyard: RunRunyard, tmp_path: Path
) -> None:
    (tmp_path / "project").mkdir()
    file = write(tmp_path / "project")
    told = json.loads(runyard("sweep", str(file), "--dry-run", "--json", cwd=tmp_path).stdout)
    assert told["folder"] == str(tmp_path / "project")


def test_a_module_is_a_program_too(runyard: RunRunyard, tmp_path: Path) -> None:
    command = ["${env}", "${interpreter}", "-m", "${program}", "${args}", "--fixed"]
    file = write(tmp_path, program="package.train", command=command)
    told = json.loads(runyard("sweep", str(file), "--dry-run", "--json", cwd=tmp_path).stdout)
    assert told["first"][0]["command"][2:] == ["-m", "package.train", "--bs=16", "--lr=0.003",
                                               "--fixed"]  # fmt: skip


def test_sweeps_are_made_listed_steered_and_found(runyard: RunRunyard, tmp_path: Path) -> None:
    file = write(tmp_path)
    assert "no sweeps yet" in runyard("runs", "--sweeps").stderr
    made = runyard("sweep", str(file), "--no-run", "--json", "--name", "first", "-P", "birds")
    sweep = json.loads(made.stdout)
    assert (sweep["name"], sweep["project"], sweep["expected"]) == ("first", "birds", 6)
    assert f"wandb agent {sweep['entity']}/birds/{sweep['id']}" in made.stderr
    assert f"runyard sweep {sweep['id']}" in made.stderr

    listed = runyard("runs", "--sweeps").stdout
    assert sweep["id"] in listed
    assert "0/6" in listed
    assert "paused" in runyard("sweep", "--pause", "first").stderr
    assert (
        json.loads(runyard("runs", "--sweeps", "--json", "--state", "paused").stdout)[0]["id"]
        == sweep["id"]
    )
    assert "is running" in runyard("sweep", "--resume", sweep["id"]).stderr
    assert "nobody works on it" in runyard("sweep", "--resume", sweep["id"]).stderr

    unknown = runyard("sweep", "frist")
    assert unknown.returncode == 1
    assert "did you mean first?" in unknown.stderr
    assert "has printed anything" in runyard("logs", "first").stderr
    assert "no trial" in runyard("show", "first", "--best").stderr
    assert "is finished" in runyard("cancel", "first", "--finish").stderr
    over = runyard("sweep", "first")
    assert over.returncode == 2
    assert "has ended: finished" in over.stderr


def trial(number: int, values: dict[str, Any], **metrics: float) -> Trial:
    made: Trial = {
        "number": number, "id": f"run{number}", "run": number, "name": f"t{number}",
        "state": "finished", "cause": "finished", "values": values,
        "value": next(iter(metrics.values()), None), "metrics": metrics, "attempts": 1,
        "agent": 1, "host": "h", "created_at": 0.0, "started_at": 0.0, "ended_at": 1.0,
        "seconds": 1.0, "seconds_left": 90.0, "exit_code": 0, "began_at": 0.0, "job": None,
        "node": None, "usage": {},
    }  # fmt: skip
    return made


def test_the_best_trial_is_first_and_one_without_a_value_is_none() -> None:
    trials = [trial(1, {"a": 1}, loss=3), trial(2, {"a": 2}, loss=1), trial(3, {"a": 3})]
    for maximize, order in ((False, [2, 1]), (True, [1, 2])):
        aims = [Aim("loss", maximize)]
        found = ranked(settings_of(trials, aims, None), aims)
        assert [one.trials[0]["number"] for one in found] == order


def test_of_several_metrics_the_front_is_shown() -> None:
    aims = [Aim("loss", maximize=False), Aim("speed", maximize=True)]
    points = [(1, 1), (2, 5), (3, 4), (0.5, 0.5), (2, 5), (4, 9)]
    trials = [trial(n, {"n": n}, loss=x, speed=y) for n, (x, y) in enumerate(points)]
    front = {one.trials[0]["number"] for one in ranked(settings_of(trials, aims, None), aims)}
    assert front == {0, 1, 3, 4, 5}


def test_the_live_view_fits_eighty_columns() -> None:
    values = {f"parameter_{n}": 0.123456 for n in range(9)}
    best = trial(7, values, loss=0.25)
    counts = {"waiting": 2, "running": 9, "paused": 0, "finished": 3, "failed": 1, "stopped": 0,
              "canceled": 0}  # fmt: skip
    sweep: Sweep = {
        "key": 1, "id": "abcdefgh", "name": "a long name " * 9, "description": None,
        "entity": "ada", "project": "birds", "method": "bayes", "state": "running",
        "cause": None, "config": {}, "budget": None, "chance": None,
        "run_cap": 40, "expected": 40, "counts": counts, "trials": 15, "attempts": 15, "agents": [],
        "metric": "loss", "goal": "minimize", "best": best, "eta_seconds": 4000.0, "seed": 1,
        "folder": None, "created_at": 0.0, "started_at": 0.0, "ended_at": None,
    }  # fmt: skip
    running = [trial(n, values) for n in range(9)]
    failed = [(trial(3, values), "exit code 1: " + "x" * 200)]
    lines = live(sweep, running, failed, "", 80).plain.split("\n")
    assert max(map(len, lines)) < 80
    shown = "\n".join(lines)
    assert "4/40" in shown
    assert "66 min left" in shown
    assert "... and 3 more" in shown
