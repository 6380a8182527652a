"""A job that was cancelled on the page, on a real cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.node.terminals import until
from tests.slurm.cluster import SlurmCluster
from tests.slurm.yard import Yard, open_yard

pytestmark = pytest.mark.slurm


@pytest.fixture
def yard(
    slurm_cluster: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Yard]:
    with open_yard(tmp_path, monkeypatch, slurm_cluster) as opened:
        yield opened


def test_the_next_command_cancels_what_the_page_was_asked_to_cancel(yard: Yard) -> None:
    yard.write("wait.py", "import time; print('at work', flush=True); time.sleep(600)")
    told = yard.submit("submit", "--yes", "--", "python", "wait.py")
    job_id = told["jobs"][0]["job_id"]
    until(lambda: "at work" in yard.logs(told), "the program")
    job = yard.api.jobs.job(job_id)
    yard.api.jobs.wish(job["key"], "cancel")
    yard.type("status", "--jobs")
    yard.cluster.wait_for(job_id, {"CANCELLED"}, timeout=180)
    yard.type("status", "--jobs")
    after = yard.api.jobs.job(job_id)
    assert after["ended_at"] is not None
    assert set(after["states"]) <= {"CANCELLED"}
