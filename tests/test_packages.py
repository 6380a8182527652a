"""What is said and done where a package is not installed; nothing is needed for it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import packages

SLURM = packages.slurm_packages(accounting=True)
EVERYTHING = f"{', '.join(SLURM)} are missing%s: sudo apt-get install {' '.join(SLURM)}"


@pytest.fixture
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine with nothing on its PATH but what the test puts into this folder."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr(packages, "SBIN_FOLDERS", ())
    monkeypatch.setattr(packages, "SERVICE_POLICY", tmp_path / "policy-rc.d")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    packages._why_missing.cache_clear()
    yield programs
    packages._why_missing.cache_clear()


def put_program(folder: Path, name: str, body: str = "") -> None:
    program = folder / name
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)


@pytest.mark.usefixtures("bare_machine")
def test_one_line_says_what_to_install() -> None:
    with pytest.raises(packages.MissingPackagesError) as caught:
        packages.ensure_packages(*SLURM)
    assert str(caught.value) == EVERYTHING % ""


def test_only_what_is_missing_is_asked_for(bare_machine: Path) -> None:
    put_program(bare_machine, "munged")
    put_program(bare_machine, "mysqld")
    assert packages.missing_packages(*SLURM) == ["slurmctld", "slurmd", "slurm-client", "slurmdbd"]
    bare = packages.slurm_packages(accounting=False)
    assert packages.missing_packages(*bare) == ["slurmctld", "slurmd", "slurm-client"]


def test_an_ordinary_user_installs_nothing(
    bare_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_program(bare_machine, "apt-get", "echo never; exit 1")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(packages.MissingPackagesError, match="missing: sudo apt-get install munge"):
        packages.ensure_packages("munge")


def test_a_failed_installation_is_told_in_one_line(bare_machine: Path) -> None:
    put_program(bare_machine, "apt-get", "echo warning >&2; echo 'E: no network' >&2; exit 100")
    with pytest.raises(packages.MissingPackagesError) as caught:
        packages.ensure_packages(*SLURM)
    assert str(caught.value) == EVERYTHING % " (apt-get update failed: E: no network)"


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


@pytest.mark.usefixtures("bare_machine")
@pytest.mark.parametrize(
    ("ci", "outcome"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)]
)
def test_without_a_package_a_test_is_skipped_and_fails_in_ci(
    monkeypatch: pytest.MonkeyPatch, ci: str, outcome: type[BaseException]
) -> None:
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match="zsh is missing: sudo apt-get install zsh"):
        packages.require("zsh")


@pytest.mark.usefixtures("bare_machine")
def test_where_zsh_is_missing_scripts_are_tried_in_bash_alone_but_not_in_ci(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CI", raising=False)
    assert packages.find_shells() == ["bash"]
    monkeypatch.setenv("CI", "true")
    with pytest.raises(packages.MissingPackagesError, match="zsh is missing"):
        packages.find_shells()


def test_no_test_installs_or_looks_for_a_program_beside_the_list() -> None:
    """What is looked for by `which` may be missing unseen: the list's programs are required."""
    programs = {name for names in packages.PACKAGES.values() for name in names}
    folder = Path(__file__).parent
    beside = [
        f"{file.relative_to(folder)}: {word}"
        for file in folder.rglob("*.py")
        for word in re.findall(r"""which\(["']([\w-]+)["']""", file.read_text())
        if word in programs and file != Path(__file__)
    ]
    assert beside == []
