"""`runyard doctor` where there is no Slurm, and what it says about the project."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runyard.actions.cluster.probe import look_from_inside
from runyard.actions.events import ignore
from runyard.clusters.load import load_profile
from runyard.config.flags import NO_FLAGS
from runyard.home import Home
from runyard.schedulers.doctor import Outcome
from runyard.schedulers.slurm.doctor import doctor as slurm_doctor
from tests.conftest import RunRunyard


def test_without_slurm_everything_else_is_still_looked_at(
    runyard: RunRunyard, tmp_path: Path
) -> None:
    nowhere = tmp_path / "bin"
    nowhere.mkdir()
    done = runyard("doctor", "--job", "--json", env={"PATH": str(nowhere)}, cwd=tmp_path)
    assert done.returncode == 1
    found = {one["name"]: one for one in json.loads(done.stdout)["findings"]}
    assert found["slurm"]["state"] == "fail"
    assert "not on the path" in found["slurm"]["says"]
    assert found["job"]["state"] == "skip"
    assert found["scratch"]["state"] == "ok"
    assert found["runyard.yaml"]["mend"] == "`runyard init` writes one"
    refused = runyard("doctor", "--write", env={"PATH": str(nowhere)}, cwd=tmp_path)
    assert refused.returncode == 2
    assert "no Slurm here to describe" in refused.stderr


def test_what_the_cluster_has_against_the_project(runyard: RunRunyard, tmp_path: Path) -> None:
    (tmp_path / "runyard.yaml").write_text("resources:\n  gpus: 9\n  time: 9d\n")
    there = {"RUNYARD_CLUSTER": "narval", "SCRATCH": str(tmp_path)}
    done = runyard("doctor", env=there, cwd=tmp_path)
    assert done.returncode == 1
    lines = " ".join(done.stdout.split())
    assert "narval: account is missing: jobs are charged to an allocation" in lines
    assert "9d (runyard.yaml:3) are longer than jobs may be: 7d" in lines
    assert "try: write gpus: 4 and nodes: 3" in lines
    # A path is one word, and stays whole.
    shown = done.stdout.replace(str(tmp_path), "/scratch")
    assert max(map(len, shown.splitlines())) <= 100


def test_a_mistake_in_the_file_is_a_line_and_no_crash(runyard: RunRunyard, tmp_path: Path) -> None:
    (tmp_path / "runyard.yaml").write_text("resources: {gpus: many}\n")
    done = runyard("doctor", "--json", cwd=tmp_path)
    (finding,) = [
        one for one in json.loads(done.stdout)["findings"] if one["name"] == "runyard.yaml"
    ]
    assert finding["state"] == "fail"
    assert finding["says"].startswith("runyard.yaml:1: gpus is the text")
    assert "Traceback" not in done.stderr


def test_a_file_above_that_others_can_have_left_is_told_of(
    runyard: RunRunyard, tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs"
    (theirs / "mine").mkdir(parents=True)
    (theirs / "runyard.yaml").write_text("command: python theirs.py\n")
    theirs.chmod(0o1777)
    done = runyard("doctor", "--json", cwd=theirs / "mine")
    found = {one["name"]: one for one in json.loads(done.stdout)["findings"]}
    assert found["runyard.yaml"]["state"] == "skip"
    assert found["runyard.yaml"]["says"].startswith(f"{theirs}/runyard.yaml is not read")


def test_the_doctors_job_is_waited_for_as_long_as_nodes_may_take_to_start(
    state_folder: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []

    def probe(*words: Any) -> Outcome:
        waited.append(words[-1].wait)
        return Outcome(None, "nothing was asked")

    monkeypatch.setattr(slurm_doctor, "run_probe", probe)
    monkeypatch.setenv("RUNYARD_CLUSTER", "generic")
    monkeypatch.chdir(tmp_path)
    usual = load_profile("generic")
    late = replace(usual, elasticity=replace(usual.elasticity, start_wait=300.0))
    for profile in (usual, late):
        doctor = slurm_doctor.SlurmDoctor({"PATH": ""})
        look_from_inside(doctor, profile, NO_FLAGS, state_folder, tmp_path, 60.0, ignore)
    assert waited == [60.0, 360.0]
