"""Trials that are cut off again and again, and what is to be seen of it afterwards: nothing.

The programs are in `programs/`, know nothing of runyard (but for `with_train.py`), and train until
a file says that they may end: no trial is through before its last cut.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from runyard.client.api import Api
from runyard.node.attempt.checkpoints import saved_at
from runyard.shapes.sweeps import Sweep, Trial
from tests.conftest import run_runyard
from tests.node.terminals import until
from tests.train.frameworks import ROOT

PROGRAMS = Path(__file__).parent / "programs"
# RUNYARD_ALL_CUTS=1: every release of the client, every program, twenty cuts each.
IS_WHOLE = bool(os.environ.get("RUNYARD_ALL_CUTS"))
CUTS = int(os.environ.get("RUNYARD_CUTS", "20" if IS_WHOLE else "2"))
AT_ONCE = int(os.environ.get("RUNYARD_CUTS_AT_ONCE", "4"))
LONG = 300.0

# Becomes the program of its cell: the agent then has that program itself for its child.
START = """\
import json, os, sys
cell = sys.argv[1].partition("=")[2]
folder = os.environ["RUNYARD_CHECKPOINT_DIR"]
with open(os.environ["MAY_END"] + "." + cell, "w") as file:
    file.write(folder)
words = [word.replace("FOLDER", folder) for word in json.load(open("cells.json"))[cell]]
os.execvp(words[0], words)
"""
# Its last line keeps the shell from becoming the program.
SHELL = """\
"$@"
code=$?
echo "ended with $code"
exit $code
"""


@dataclass(frozen=True)
class Cell:
    """A program with a release of the client."""

    name: str
    python: Path
    program: str
    words: tuple[str, ...] = ()
    in_shell: bool = False
    counter: str = "at"
    """The metric that counts the program's steps."""

    def command(self, folder: Path) -> list[str]:
        words = [str(self.python), str(PROGRAMS / self.program), "FOLDER", *self.words]
        if self.program == "with_train.py":
            words = ["env", f"PYTHONPATH={ROOT / 'src'}", *words]
        return ["sh", str(folder / "around.sh"), *words] if self.in_shell else words


class Trials:
    """One sweep, a trial a cell. `cut` is what the test does to whoever runs them."""

    def __init__(self, folder: Path, api: Api, cells: Sequence[Cell]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.cells = {cell.name: cell for cell in cells}
        self._api = api
        self._may_end = folder / "may-end"
        (folder / "start.py").write_text(START)
        (folder / "around.sh").write_text(SHELL)
        commands = {cell.name: cell.command(folder) for cell in cells}
        (folder / "cells.json").write_text(json.dumps(commands))
        config = {
            "command": [sys.executable, "${program}", "${args}"],
            "program": "start.py",
            "method": "grid",
            "parameters": {"cell": {"values": [cell.name for cell in cells]}},
            # Cut more often than trials are in life; and clients up to 0.17 may miss their own
            # service when they start on a busy machine.
            "runyard": {"retries": {"node": 1000, "program": 10}},
        }
        (folder / "sweep.yaml").write_text(json.dumps(config))

    @property
    def environment(self) -> dict[str, str]:
        return {"MAY_END": str(self._may_end), "WANDB_SILENT": "true", "OMP_NUM_THREADS": "1"}

    def make(self) -> Sweep:
        """The sweep, without an agent."""
        made = run_runyard("sweep", "sweep.yaml", "--no-run", "--no-check", cwd=self.folder)
        assert made.returncode == 0, made.stderr
        return self.sweep

    @property
    def sweep(self) -> Sweep:
        return self._api.sweeps.sweeps(limit=1)[0]

    def all(self) -> list[Trial]:
        return self._api.sweeps.trials(self.sweep["key"])

    def wait_for_work(self, chance: random.Random) -> None:
        """Until every trial has got on; then any moment of a step is as good as another."""
        for _ in range(2):
            self._wait_for_checkpoints(self._saved())
        time.sleep(chance.uniform(0.0, 0.3))

    def wait_for_attempt(self, number: int) -> None:
        """Until every trial is in this attempt, or in a later one."""
        until(
            lambda: all(trial["attempts"] >= number for trial in self.all()),
            lambda: f"attempts {number}: {[trial['attempts'] for trial in self.all()]}",
            LONG,
        )

    def _wait_for_checkpoints(self, before: dict[str, float]) -> None:
        until(
            lambda: self._has_saved_since(before) or self._over(),
            lambda: f"newer ones than {before}",
            LONG,
        )
        over = self._over()
        assert not over, over

    def _over(self) -> list[str]:
        """Trials that have ended, which they may not yet."""
        return [
            f"{trial['name']}: {trial['state']}, {trial['cause']}, {trial['exit_code']}"
            for trial in self.all()
            if trial["state"] not in ("waiting", "running")
        ]

    def _saved(self) -> dict[str, float]:
        places = {file.name: file.read_text() for file in self.folder.glob("may-end.*")}
        return {name: saved_at(place) or 0.0 for name, place in places.items() if place}

    def _has_saved_since(self, before: dict[str, float]) -> bool:
        now = self._saved()
        return len(now) == len(self.cells) and all(
            now[name] > before.get(name, 0.0) for name in now
        )

    def may_end(self) -> None:
        self._may_end.touch()

    def faults(self) -> dict[str, str]:
        """What is wrong with the curves: every step is there once, in order."""
        return {name: fault for name in self.cells if (fault := self._fault(name))}

    def _fault(self, name: str) -> str | None:
        cell = self.cells[name]
        (trial,) = (one for one in self.all() if one["values"]["cell"] == name)
        if trial["state"] != "finished":
            return f"{trial['state']} ({trial['cause']})"
        run = self._api.run(trial["id"])
        rows = [row for row in self._api.rows(run) if "loss" in " ".join(row)]
        steps = [int(row[cell.counter]) for row in rows if cell.counter in row]
        if cell.program == "trainer.py":
            steps = [int(row[cell.counter]) for row in rows if "train/loss" in row]
        first = 0 if cell.program == "lightning_fit.py" else 1
        wanted = list(range(first, max(steps, default=0) + 1))
        missing = sorted({*wanted} - {*steps})
        twice = sorted({step for step in steps if steps.count(step) > 1})
        if missing or twice or steps != wanted:
            return f"missing {missing}, twice {twice}, of {len(wanted)} in {trial['attempts']}"
        if "step" in cell.words and [row["_step"] for row in rows] != steps:
            return "steps are not those that the program named"
        return None
