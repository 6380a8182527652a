"""What `--dry-run` accepts is taken, and what it refuses is refused with the same words."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator

import pytest

from tests.slurm.cluster import SlurmCluster
from tests.slurm.yard import Yard, open_yard

pytestmark = pytest.mark.slurm

FILE = {"program": "train.py", "method": "grid", "parameters": {"lr": {"values": [1, 2]}}}
PROGRAM = ("--", "python", "train.py")
REQUESTS = [
    ("submit", *PROGRAM),
    ("submit", "--seeds", "3", *PROGRAM),
    ("submit", "--time", "2h", "--cpus", "2", "--memory", "100M", *PROGRAM),
    ("submit", "--partition", "nowhere", *PROGRAM),
    ("submit", "--cpus", "4000", *PROGRAM),
    ("submit", "--gpus", "100", *PROGRAM),
    ("submit", "--nodes", "90", *PROGRAM),
    ("submit", "--constraint", "unheard-of", *PROGRAM),
    ("submit", "--sbatch=--nodelist=n999", *PROGRAM),
    ("submit", "--sbatch=--no-such-option", *PROGRAM),
    ("submit", "--sbatch=--begin=whenever", *PROGRAM),
    ("submit", "--", "python", "missing.py"),
    ("submit", "--environment", "venv", "--environment-path", "no/venv", *PROGRAM),
    ("sweep", "sweep.yaml", "--on", "slurm"),
    ("sweep", "sweep.yaml", "--on", "slurm", "--partition", "nowhere"),
    ("farm", "tasks.txt", "--on", "slurm"),
    ("farm", "tasks.txt", "--on", "slurm", "--agents", "2", "--form", "nodes", "--gpus", "77"),
]
# The others with RUNYARD_ALL_SLURM=1: each is two commands.
FEW = [REQUESTS[number] for number in (0, 3, 4, 11, 13)]
ALL = bool(os.environ.get("RUNYARD_ALL_SLURM"))


@pytest.fixture(scope="module")
def yard(
    tmp_path_factory: pytest.TempPathFactory,
    module_environment: pytest.MonkeyPatch,
    slurm_cluster: SlurmCluster,
) -> Iterator[Yard]:
    with open_yard(tmp_path_factory.mktemp("dry"), module_environment, slurm_cluster) as opened:
        opened.write("train.py", "import sys; print(sys.argv)\n")
        opened.write("sweep.yaml", json.dumps(FILE))
        opened.write("tasks.txt", "python train.py\nsleep 1\n")
        yield opened


@pytest.mark.parametrize("words", REQUESTS if ALL else FEW, ids=" ".join)
def test_a_dry_run_and_the_submission_agree(yard: Yard, words: tuple[str, ...]) -> None:
    command, *rest = words
    shown = yard.type(command, "--dry-run", *rest, check=False)
    done = yard.type(command, "--yes", *rest, check=False)
    if "node configuration is not available" in _refusal(shown) and not done.returncode:
        return  # This Slurm takes a job that can never start; the dry run says so.
    assert (shown.returncode, _refusal(shown)) == (done.returncode, _refusal(done))
    if not shown.returncode:
        assert "Slurm says:  Job" in shown.stderr


def _refusal(done: subprocess.CompletedProcess[str]) -> str:
    """What the command says last, where it refuses."""
    if not done.returncode:
        return ""
    return done.stderr.rpartition("runyard: ")[2]
