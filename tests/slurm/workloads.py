"""The workloads of examples/ as jobs: placed with their environment, cut off, and looked at."""

from __future__ import annotations

import os
import shutil
import signal
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from runyard.shapes.runs import Run
from tests.environments import start_lightly
from tests.node.terminals import until
from tests.slurm.cluster import FINAL_STATES
from tests.slurm.yard import Yard
from tests.train.frameworks import ROOT

EXAMPLES = ROOT / "examples"
# The rig's nodes have no GPUs to train on: its ranks are counted, as a laptop's are.
SMALL = ("--gpus", "0", "--cpus", "1", "--memory", "2G", "--time", "30m")
PATIENCE = 600


def place(folder: Path, example: str, python: Path) -> None:
    """The example as it is, with its environment beside it.

    Its own has the packages of the one that is shared, under their own paths: by those Python finds
    what it has compiled. Through a link to the whole, it compiled all of torch anew for each test.
    """
    shutil.copytree(EXAMPLES / example, folder, dirs_exist_ok=True)
    venv.create(folder / ".venv", symlinks=True, with_pip=False)
    (site,) = (folder / ".venv").glob("lib/python*/site-packages")
    (shared,) = python.parents[1].glob("lib/python*/site-packages")
    start_lightly(folder / ".venv")
    (site / "shared.pth").write_text(f"{shared}\n{(shared / 'beside.pth').read_text()}")


def held(*words: str) -> Sequence[str]:
    """A Python program that waits, in its first attempt, for the word to save."""
    return ("python", str(ROOT / "tests" / "train" / "programs" / "held.py"), *words)


def cut_off(yard: Yard, said: dict[str, Any], link: int = 1) -> None:
    """Do what Slurm does before the time limit: to the batch shell, and through it to the agent."""
    (job,) = said["jobs"]
    until(lambda: yard.logs(said).count("held after 2 steps") >= link, f"link {link}", PATIENCE)
    number, task = f"SLURM_ARRAY_JOB_ID={job['job_id']}", f"SLURM_ARRAY_TASK_ID={link}"
    (script,) = yard.batch_shells(number, task)
    os.kill(script, signal.SIGUSR2)


def folder_of(run: Run) -> Path:
    assert run["folder"] is not None
    return Path(run["folder"])


def runs_of(yard: Yard, said: dict[str, Any]) -> list[Run]:
    """The runs of a submission, when it is over and well."""
    sweep = yard.ended(said["sweep"], PATIENCE)
    assert sweep["state"] == "finished", yard.logs(said)
    for job in said["jobs"]:
        yard.cluster.wait_for(job["job_id"], FINAL_STATES, PATIENCE)
    return [yard.api.run(trial["id"]) for trial in yard.api.sweeps.trials(sweep["key"])]
