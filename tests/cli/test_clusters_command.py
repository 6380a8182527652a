"""`runyard clusters`: which there are, which one this is, and what is known of it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.conftest import RunRunyard


def test_the_list_marks_the_one_that_this_is(runyard: RunRunyard) -> None:
    done = runyard("clusters", env={"RUNYARD_CLUSTER": "narval"})
    assert done.returncode == 0
    (marked,) = [line for line in done.stdout.splitlines() if line.startswith("*")]
    assert marked.split()[1] == "narval"
    assert "RUNYARD_CLUSTER says so" in done.stderr
    listed = json.loads(runyard("clusters", "--json").stdout)
    assert {one["name"] for one in listed} >= {"generic", "fir", "perlmutter", "plai"}


def test_which_one_and_why(runyard: RunRunyard) -> None:
    done = runyard("clusters", "which", "--json", env={"SLURM_CLUSTER_NAME": "fir"})
    found = json.loads(done.stdout)
    assert (found["name"], found["because"]) == ("fir", "Slurm calls the cluster fir")


def test_a_profile_in_full(runyard: RunRunyard) -> None:
    text = runyard("clusters", "show", "fir").stdout
    assert "made of generic.yaml, alliance.yaml, fir.yaml" in text
    assert "  longest: 7d" in text
    assert "h100: {memory_gb: 80, per_node: 4, cpus: 12" in text
    data = json.loads(runyard("clusters", "show", "fir", "--json").stdout)
    assert data["limits"]["longest"] == 604800


def test_a_users_own_is_found_and_a_broken_one_is_told(runyard: RunRunyard, tmp_path: Path) -> None:
    folder = tmp_path / "clusters"
    folder.mkdir()
    (folder / "lab.yaml").write_text("inherits: fir\n")
    there = {"RUNYARD_CLUSTERS": str(folder)}
    assert any(
        line.split()[:1] == ["lab"] and "yours: Fir" in line
        for line in runyard("clusters", env=there).stdout.splitlines()
    )
    (folder / "bad.yaml").write_text("limits:\n  longest: 5\n")
    done = runyard("clusters", env=there)
    assert done.returncode == 1
    assert "bad.yaml:2: longest is the number 5" in done.stderr
    assert "lab" in done.stdout


def test_an_unknown_name_is_answered_with_the_nearest(runyard: RunRunyard) -> None:
    done = runyard("clusters", "show", "narvall")
    assert done.returncode == 1
    assert "did you mean narval?" in done.stderr
    assert runyard("clusters", "which", "fir").returncode == 2
