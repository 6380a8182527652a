"""A job that was cancelled on the page, on a real cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard.home import Home
from tests.conftest import end_server, isolate
from tests.node.terminals import until
from tests.slurm.cluster import SlurmCluster
from tests.slurm.yard import Yard

pytestmark = pytest.mark.slurm


@pytest.fixture
def yard(
    slurm_cluster: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Yard]:
    isolate(tmp_path, monkeypatch)
    project = tmp_path / "birds"
    project.mkdir()
    home = Home(tmp_path / "state")
    yield Yard(home, slurm_cluster, project)
    end_server(home)


def test_the_next_command_cancels_what_the_page_was_asked_to_cancel(yard: Yard) -> None:
    yard.write("wait.py", "import time; print('at work', flush=True); time.sleep(600)")
    told = yard.submit("submit", "--yes", "--", "python", "wait.py")
    job_id = told["jobs"][0]["job_id"]
    # An agent that begins after the wish is given nothing, and its job ends well by itself.
    until(lambda: "at work" in yard.logs(told), "the program")
    job = yard.api.jobs.job(job_id)
    yard.api.jobs.wish(job["key"], "cancel")
    yard.type("jobs")
    yard.cluster.wait_for(job_id, {"CANCELLED"}, timeout=180)
    yard.type("jobs")
    after = yard.api.jobs.job(job_id)
    assert after["ended_at"] is not None
    assert set(after["states"]) <= {"CANCELLED"}
