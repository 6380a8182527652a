"""Environments on a cluster: built in a job of their own, and active in the jobs that use them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runyard.home import Home
from tests.conftest import RunRunyard
from tests.live.programs import list_runs
from tests.live.small_image import host_mounts, make_image
from tests.slurm.cluster import SlurmCluster

pytestmark = pytest.mark.slurm

PROJECT = """\
environment:
  kind: uv
  build: true
profile:
  software: {build_where: job}
"""


SEEN = """\
import os, pathlib, sys, wandb
run = wandb.init()
run.log({"value": 7})
print("in the image:", pathlib.Path("/in-the-image").read_text())
print("words:", sys.argv[1:])
print("job:", os.environ["SLURM_JOB_ID"])
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
    assert re.search(r"the build's job \d+ is (pending|running)", built.stderr)
    assert (Path(built.stdout.strip()) / "bin" / "python").exists()
    again = runyard("env", "build", cwd=project)
    assert "is there already" in again.stderr
    listed = json.loads(runyard("status", "--jobs", "--json").stdout)
    assert [job["kind"] for job in listed if job["kind"] == "build"] == ["build"]

    done = submit(runyard, project, "python", "-c", "import sys; print('prefix', sys.prefix)")
    on_cluster.wait_for(done["jobs"][0]["job_id"], "COMPLETED", 180)
    assert f"prefix {built.stdout.strip()}" in runyard("logs", done["sweep"]).stdout

    (project / "requirements.txt").write_text("no-such-package-anywhere\n")
    failed = runyard("submit", "--yes", "--", "true", cwd=project, timeout=120)
    assert failed.returncode == 1
    assert "nothing was submitted" in failed.stderr
    assert "no-such-package-anywhere" in failed.stderr


def test_a_program_submitted_to_an_image_runs_in_it(
    runyard: RunRunyard, state_folder: Home, on_cluster: SlurmCluster, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "seen.py").write_text(SEEN)
    image = make_image(tmp_path / "image")
    environment = {"kind": "charliecloud", "image": str(image), "mounts": list(host_mounts())}
    (project / "runyard.yaml").write_text(json.dumps({"environment": environment}))
    missing = runyard("submit", "--yes", "--container", "gone", "--", "true", cwd=project)
    assert missing.returncode == 2
    assert f"the image {project}/gone is not there; nothing was submitted" in missing.stderr
    done = submit(runyard, project, sys.executable, "seen.py", "as given")
    on_cluster.wait_for(done["jobs"][0]["job_id"], "COMPLETED", 180)
    printed = runyard("logs", done["sweep"]).stdout
    assert "in the image: yes" in printed
    assert "words: ['as given']" in printed
    assert f"job: {done['jobs'][0]['job_id']}" in printed
    (run,) = list_runs(runyard)
    assert (run["state"], run["summary"]["value"]) == ("finished", 7)


def submit(runyard: RunRunyard, project: Path, *command: str) -> dict[str, Any]:
    done = runyard("submit", "--yes", "--json", "--", *command, cwd=project, timeout=120)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told
