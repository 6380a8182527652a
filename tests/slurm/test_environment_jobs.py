"""Environments on a cluster: built in a job of their own, and active in the jobs that use them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard.home import Home
from tests.conftest import RunRunyard
from tests.slurm.cluster import SlurmCluster

pytestmark = pytest.mark.slurm

PROJECT = """\
environment:
  kind: uv
  build: true
profile:
  software: {build_where: job}
"""


@pytest.fixture
def on_cluster(
    slurm_cluster: SlurmCluster, monkeypatch: pytest.MonkeyPatch, state_folder: Home
) -> Iterator[SlurmCluster]:
    """Commands find this cluster, and jobs find uv."""
    path = f"{Path(sys.executable).parent}:{slurm_cluster.env['PATH']}"
    monkeypatch.setenv("PATH", path)
    monkeypatch.setenv("SLURM_CONF", slurm_cluster.env["SLURM_CONF"])
    monkeypatch.setenv("UV_OFFLINE", "1")
    yield slurm_cluster
    slurm_cluster.cancel_jobs()


def test_an_environment_is_built_in_a_job_once_and_failure_stops_the_launch(
    runyard: RunRunyard, state_folder: Home, on_cluster: SlurmCluster, tmp_path: Path
) -> None:
    project = tmp_path / "my project"
    project.mkdir()
    (project / "runyard.yaml").write_text(PROJECT)
    (project / "requirements.txt").write_text("")
    assert runyard("server", "start").returncode == 0
    built = runyard("env", "build", cwd=project, timeout=120)
    assert built.returncode == 0, built.stderr
    assert "builds the environment of requirements.txt" in built.stderr
    assert (Path(built.stdout.strip()) / "bin" / "python").exists()
    again = runyard("env", "build", cwd=project)
    assert "is there already" in again.stderr
    listed = json.loads(runyard("jobs", "--json").stdout)
    assert [job["kind"] for job in listed if job["kind"] == "build"] == ["build"]

    (project / "requirements.txt").write_text("no-such-package-anywhere\n")
    failed = runyard("env", "build", cwd=project, timeout=120)
    assert failed.returncode == 1
    assert "nothing was submitted" in failed.stderr
    assert "no-such-package-anywhere" in failed.stderr
