"""A program is timed in a short interactive job, on the cluster's own nodes."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.live.small_image import host_mounts, make_image
from tests.live.test_gauge import PROGRAM
from tests.node.terminals import until
from tests.slurm.yard import Yard

pytestmark = pytest.mark.slurm
more = pytest.mark.skipif(
    not os.environ.get("RUNYARD_ALL_SLURM"), reason="RUNYARD_ALL_SLURM=1: two jobs more"
)


@pytest.fixture
def yard(module_yard: Yard) -> Yard:
    (module_yard.project / "runyard.yaml").unlink(missing_ok=True)
    return module_yard


def test_one_experiment_is_timed_in_a_job_and_becomes_the_request(yard: Yard) -> None:
    (yard.project / "train.py").write_text(PROGRAM)
    (yard.project / "runyard.yaml").write_text("resources:\n  time: 24h\n  memory: 400M\n")
    done = yard.type(
        "gauge", "--on", "slurm", "--json", "--write", "--", "python", "train.py", check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Granted job allocation" in done.stderr
    told = json.loads(done.stdout)
    assert told["figures"]["exit_code"] == 0
    assert 100e6 < told["figures"]["memory_peak"] < 300e6
    assert (
        (yard.project / "runyard.yaml")
        .read_text()
        .startswith("resources:\n  cpus: 1\n  time: 5m\n  memory: 256M\n")
    )

    def job() -> Any:
        # Slurm may still be clearing up behind it when the command looks; the next sees its end.
        yard.type("status", "--jobs")
        [job] = yard.api.jobs.jobs()
        return job

    assert job()["kind"] == "gauge"
    until(lambda: job()["states"] == {"CANCELLED": 1}, lambda: str(job()["states"]))
    assert yard.api.figures.known("project")["figures"][0]["kind"] == "train.py"


def test_a_whole_task_file_with_the_real_resources(yard: Yard) -> None:
    (yard.project / "train.py").write_text(PROGRAM)
    (yard.project / "tasks.txt").write_text("python train.py\npython train.py\n")
    done = yard.type(
        "gauge", "--on", "slurm", "--memory", "150M", "--cpus", "2", "--no-keep",
        "--tasks", "tasks.txt", check=False,
    )  # fmt: skip
    # Two of them need more than the job has: it is told before anything is launched.
    assert done.returncode == 1, done.stderr + done.stdout
    assert "do not fit the 0.2 GB here" in done.stdout


# No import from outside of an image: a program of any language, with 60 MB, that tells its steps.
PLAIN = """\
import os, time
room = bytearray(os.urandom(1000)) * 60_000
inside = os.path.exists("/in-the-image")
for step in range(1, 31):
    time.sleep(0.1)
    with open(os.environ["RUNYARD_PROGRESS_FILE"], "a") as file:
        file.write(f"{step} {30 if inside else 60}\\n")
"""


@more
def test_a_program_in_a_container_is_measured_in_it(yard: Yard, tmp_path: Path) -> None:
    image = make_image(tmp_path / "image")
    environment = {"kind": "charliecloud", "image": str(image), "mounts": [*host_mounts()]}
    yard.write("runyard.yaml", json.dumps({"environment": environment}))
    yard.write("plain.py", PLAIN)
    told = json.loads(
        yard.type("gauge", "--on", "slurm", "--json", "--", sys.executable, "plain.py").stdout
    )
    figures = told["figures"]
    assert (figures["exit_code"], figures["step"], figures["total"]) == (0, 30, 30)
    assert 60e6 < figures["memory_peak"] < 200e6


RANKS = """\
import os, time
from runyard import train
room = bytearray(os.urandom(1000)) * 60_000
for step in train.steps(0, 30):
    time.sleep(0.1)
print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"])
"""


@more
def test_all_ranks_on_the_node_are_measured_together(yard: Yard) -> None:
    yard.write("ranks.py", RANKS)
    done = yard.type(
        "gauge", "--on", "slurm", "--json", "--distributed", "srun", "--nodes", "2",
        "--tasks-per-node", "2", "--", "python", "ranks.py", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)["figures"]
    assert (figures["exit_code"], figures["step"], figures["total"]) == (0, 30, 30)
    # Two of 60 MB; those of the other node are not seen from here.
    assert 120e6 < figures["memory_peak"] < 600e6
