"""A program is timed in a short interactive job, on the cluster's own nodes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.test_gauge import PROGRAM
from tests.slurm.cluster import SlurmCluster
from tests.slurm.yard import Yard, open_yard

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(
        not os.environ.get("RUNYARD_ALL_SLURM"), reason="RUNYARD_ALL_SLURM=1: two jobs more"
    ),
]


@pytest.fixture
def yard(
    slurm_cluster: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Yard]:
    with open_yard(tmp_path / "yard", monkeypatch, slurm_cluster) as found:
        yield found


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
    [job] = yard.api.jobs.jobs()
    assert job["kind"] == "gauge"
    assert job["states"] == {"CANCELLED": 1}
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
