"""What runyard knows of jobs where Slurm forgets them, or does not answer."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator

import pytest

from tests.conftest import ask_runyard
from tests.slurm.cluster import SlurmCluster
from tests.slurm.typed import Yard, open_birds, python_line

pytestmark = pytest.mark.slurm


@pytest.fixture(scope="module")
def yard(
    bare_slurm_cluster: SlurmCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Yard]:
    with open_birds(bare_slurm_cluster, tmp_path_factory.mktemp("bare")) as opened:
        yield opened


def test_without_accounting_runyard_remembers_by_itself(yard: Yard) -> None:
    lines = [python_line(str(yard.project / "task.py"), str(number)) for number in (3, 4, 5)]
    lines.append(python_line(str(yard.project / "busy.py")))
    sweep, job = yard.submit("some", lines, "--agents", "2", "--memory", "400M", "--gpus", "1")
    yard.wait_for_memory(job)
    yard.wait_for(sweep, finished=3, failed=1)
    yard.wait_for_end(job)
    told = ask_runyard("status", job, "--jobs", cwd=yard.project)
    assert "the site keeps no accounting" in told.stderr
    found = yard.json("status", job, "--jobs")
    assert sum(found["states"].values()) == 2
    assert set(found["states"]) == {"COMPLETED", "FAILED"}  # As its own trials ended.
    assert found["used"]["memory_peak"] > 30 << 20
    assert found["used"]["longest_seconds"] >= 1
    assert "line1\tno luck today" in yard.read("logs", job, "--trials")
    refused = yard.read("status", "--jobs", "--all", code=1)
    assert "the site keeps no accounting" in refused
    assert "from its own ledger" in refused
    assert yard.json("clusters", "usage")["source"] == "runyard's own ledger"
    [group] = yard.json("report", f"job:{job}")["jobs"]
    assert group["source"] == ["agents"]

    (yard.project / "mended").touch()
    again = json.loads(yard.type("retry", sweep, "--form", "nodes", "--json"))
    assert again["jobs"][0]["tasks"] == 1
    yard.wait_for(sweep, finished=4, failed=0)


def test_a_controller_that_hangs_is_told_and_what_is_known_is_shown(yard: Yard) -> None:
    sweep, job = yard.submit("patient", ["sleep 300"], "--time", "9m")
    yard.wait_for(sweep, running=1)
    assert f"job {job}  running on n" in yard.read("status", sweep)
    controller = int((yard.cluster.folder / "slurmctld.pid").read_text())
    os.kill(controller, signal.SIGSTOP)
    try:
        shown = yard.type("status", sweep, env={"RUNYARD_SLURM_SECONDS": "1"})
    finally:
        os.kill(controller, signal.SIGCONT)
    assert "1 running" in shown
    assert f"job {job}  running" in shown
    assert "no answer in 1 s" in shown
    assert "jobs as they were" in shown
    assert yard.json("status", sweep)["slurm"]["trouble"] is None
    yard.type("cancel", sweep)
    yard.cluster.wait_for(job, "CANCELLED", timeout=180)
    assert yard.sweep(sweep)["jobs"][0]["states"] == {"CANCELLED": 1}
