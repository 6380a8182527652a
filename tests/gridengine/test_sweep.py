"""A sweep in jobs of Grid Engine, cut off by their limits of time and resumed in the next ones."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from runyard.client.api import Api
from runyard.client.discover import ensure_server
from runyard.home import Home
from tests.conftest import RunRunyard
from tests.live.sweeping import with_python
from tests.node.terminals import until
from tests.slurm.trainer import TRAINS, history, sweep_file, uncut

from .cluster import GridEngineCell

pytestmark = pytest.mark.slurm

TRIALS, STEPS, LANES, LINKS = 20, 20, 3, 20


@dataclass(frozen=True)
class Yard:
    """A project on a cell, and runyard's commands typed there."""

    home: Home
    project: Path
    environ: dict[str, str]
    runyard: RunRunyard

    def type(self, *words: str) -> str:
        done = self.runyard(*words, cwd=self.project, env=self.environ)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def submit(self, *words: str) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(self.type(words[0], "--json", *words[1:]))
        return said

    @property
    def api(self) -> Api:
        return ensure_server(self.home).api

    def ended(self, sweep: str, seconds: float = 600) -> str:
        """How the sweep ended."""

        def state() -> str:
            return self.api.sweeps.find(sweep)["state"]

        until(lambda: state() != "running", lambda: f"its end: {state()}", seconds)
        return state()

    def logs(self, said: dict[str, Any]) -> str:
        folder = Path(said["logs"]).parent
        return "".join(file.read_text() for file in sorted(folder.glob("*.log")))


@pytest.fixture
def yard(
    gridengine_cell: GridEngineCell, state_folder: Home, runyard: RunRunyard, tmp_path: Path
) -> Iterator[Yard]:
    python = with_python()["PATH"].partition(":")[0]
    cell = {name: gridengine_cell.env[name] for name in gridengine_cell.env if "SGE" in name}
    environ = {**cell, "PATH": f"{python}:{gridengine_cell.env['PATH']}"}
    project = tmp_path / "project"
    project.mkdir()
    (project / "trains.py").write_text(TRAINS)
    yield Yard(state_folder, project, environ, runyard)
    gridengine_cell.cancel_jobs()


def test_twenty_trials_are_cut_off_by_time_and_all_of_them_end_as_if_they_were_not(
    yard: Yard,
) -> None:
    lrs = list(range(1, TRIALS + 1))
    (yard.project / "sweep.json").write_text(sweep_file(lrs, steps=STEPS, pause=0.6))
    said = yard.submit(
        "sweep", "sweep.json", "--on", "gridengine", "--time", "45s", "--grace", "8s",
        "--agents", str(LANES), "--chain", str(LINKS), "--yes",
    )  # fmt: skip
    assert yard.ended(said["sweep"]) == "finished", yard.logs(said)
    trials = yard.api.sweeps.trials(yard.api.sweeps.find(said["sweep"])["key"])
    assert len(trials) == TRIALS
    for trial in trials:
        lr = int(trial["values"]["lr"])
        shown = history(yard.api, trial["id"])
        assert shown == uncut(STEPS, lr), f"{trial['name']}: {shown}\n{yard.logs(said)}"
    logs = yard.logs(said)
    assert "goes back (go-on)" in logs
    jobs = yard.api.jobs.jobs()
    assert {job["cluster"] for job in jobs} == {jobs[0]["cluster"]}


def test_tasks_of_an_array_have_folders_of_their_own(yard: Yard) -> None:
    """One that ends takes nothing from those beside it."""
    (yard.project / "task.sh").write_text('sleep "$1"; mktemp; echo "folder $TMPDIR"\n')
    (yard.project / "tasks.txt").write_text("".join(f"sh task.sh {n}\n" for n in (6, 14, 14)))
    said = yard.submit("farm", "tasks.txt", "--on", "gridengine", "--agents", "3", "--yes")
    assert yard.ended(said["sweep"]) == "finished", yard.logs(said)
    folders = re.findall(r"folder (\S+)", yard.logs(said))
    assert len(set(folders)) == len(folders) == 3, folders


def test_tasks_that_get_no_folder_from_grid_engine_make_one_each(yard: Yard) -> None:
    (yard.project / "tasks.txt").write_text("true\ntrue\n")
    words = ("farm", "tasks.txt", "--on", "gridengine", "--agents", "2", "--dry-run")
    script = yard.runyard(*words, cwd=yard.project, env=yard.environ).stdout.splitlines()
    first = next(n for n, line in enumerate(script) if line.startswith("array_task="))
    last = next(n for n, line in enumerate(script) if line.startswith("steward="))
    ended = next(line for line in script if line.startswith("ended="))
    text = "\n".join([*script[first:last], ended, 'echo "paths $TMPDIR $ended"'])

    def paths(task: str) -> list[str]:
        environ = {**os.environ, "JOB_ID": "7", "SGE_TASK_ID": task, "SGE_CELL": "default"}
        for name in ("TMPDIR", "TMP"):
            environ.pop(name, None)
        shown = subprocess.run(
            ["bash", "-c", text], env=environ, capture_output=True, text=True, check=True
        ).stdout
        return shown.rpartition("paths ")[2].split()

    folders = [paths(task) for task in ("1", "2", "undefined")]
    assert len({path for found in folders for path in found}) == 6, folders


def test_a_program_is_submitted_looked_at_and_cancelled_without_saying_where(yard: Yard) -> None:
    """Grid Engine is found by itself: its commands are here, and Slurm's cluster is not."""
    said = yard.submit("submit", "--yes", "--", "python", "-c", "print('seen from inside')")
    assert yard.ended(said["sweep"]) == "finished", yard.logs(said)
    assert "seen from inside" in yard.type("logs", said["sweep"])
    slow = yard.submit("submit", "--yes", "--", "sleep", "300")
    number = slow["jobs"][0]["job_id"]
    until(lambda: "running" in yard.type("status", number), lambda: "it runs", 60)
    yard.type("cancel", "--yes", number)
    until(lambda: "cancelled" in yard.type("status", number), lambda: "its end", 60)


def test_what_would_be_sent_is_shown_in_grid_engines_words(yard: Yard) -> None:
    words = ("submit", "--dry-run", "--time", "1h", "--", "python", "trains.py")
    done = yard.runyard(*words, cwd=yard.project, env=yard.environ)
    assert "qsub -terse" in done.stderr
    assert "#$ -l h_rt=3600" in done.stdout
