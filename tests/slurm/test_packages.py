"""What is said and done where Slurm is not installed; no Slurm needed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from . import packages, plugin

EVERYTHING = "munge slurmctld slurmd slurm-client slurmdbd mariadb-server"


@pytest.fixture
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with nothing on its PATH but what the test puts into this folder."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr(packages, "SBIN_FOLDERS", ())
    monkeypatch.setattr(packages, "SERVICE_POLICY", tmp_path / "policy-rc.d")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return programs


def put_program(folder: Path, name: str, body: str = "") -> None:
    program = folder / name
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)


@pytest.mark.usefixtures("bare_machine")
def test_one_line_says_what_to_install() -> None:
    with pytest.raises(packages.MissingPackagesError) as caught:
        packages.ensure_packages(accounting=True)
    assert str(caught.value) == f"Slurm is missing: sudo apt-get install {EVERYTHING}"


def test_only_what_is_missing_is_asked_for(bare_machine: Path) -> None:
    put_program(bare_machine, "munged")
    put_program(bare_machine, "mysqld")
    assert packages.missing_packages(accounting=True) == (
        ["slurmctld", "slurmd", "slurm-client", "slurmdbd"]
    )
    assert packages.missing_packages(accounting=False) == ["slurmctld", "slurmd", "slurm-client"]


def test_an_ordinary_user_installs_nothing(
    bare_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_program(bare_machine, "apt-get", "echo never; exit 1")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(packages.MissingPackagesError, match="missing: sudo apt-get install munge"):
        packages.ensure_packages(accounting=False)


def test_a_failed_installation_is_told_in_one_line(bare_machine: Path) -> None:
    put_program(bare_machine, "apt-get", "echo warning >&2; echo 'E: no network' >&2; exit 100")
    with pytest.raises(packages.MissingPackagesError) as caught:
        packages.ensure_packages(accounting=True)
    assert str(caught.value) == (
        "Slurm is missing (apt-get update failed: E: no network): "
        f"sudo apt-get install {EVERYTHING}"
    )


def test_services_are_denied_to_start_while_installing(bare_machine: Path, tmp_path: Path) -> None:
    record, policy = tmp_path / "record", tmp_path / "policy-rc.d"
    put_program(bare_machine, "apt-get", f'"{policy}"; echo "$DEBIAN_FRONTEND $?" >> "{record}"')
    packages.install(["munge"])
    assert record.read_text() == "noninteractive 101\n" * 2  # update, then install
    assert not policy.exists()


def test_a_machine_s_own_service_policy_is_kept(bare_machine: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy-rc.d"
    policy.write_text("mine")
    put_program(bare_machine, "apt-get")
    packages.install(["munge"])
    assert policy.read_text() == "mine"


def test_without_slurm_a_test_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="Slurm is missing"):
        plugin.skip_or_fail("Slurm is missing: …")


def test_without_slurm_a_test_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="Slurm is missing"):
        plugin.skip_or_fail("Slurm is missing: …")
