"""Environments that are built once from a project's files, with the real venv and uv."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from runyard.home import Home
from tests.conftest import RunRunyard
from tests.node.terminals import RUNYARD, until

pytestmark = pytest.mark.live

PACKAGE = "tiny"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that needs one package, which lies beside it: nothing is downloaded."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    folder = tmp_path / "my project"
    folder.mkdir()
    wheel = folder / f"{PACKAGE}-1.0-py3-none-any.whl"
    info = f"{PACKAGE}-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr(f"{PACKAGE}.py", "VALUE = 42\n")
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: 1.0\n")
        file.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{info}/RECORD", "")
    (folder / "requirements.txt").write_text(f"{PACKAGE} @ {wheel.as_uri()}\n")
    return folder


def value_in(folder: str) -> str:
    words = [f"{folder}/bin/python", "-c", f"import {PACKAGE}; print({PACKAGE}.VALUE)"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def test_it_is_built_once_and_then_used_as_it_is(
    runyard: RunRunyard, state_folder: Home, project: Path
) -> None:
    first = runyard("env", "build", "--kind", "uv", "--json", cwd=project)
    assert first.returncode == 0, first.stderr
    told = json.loads(first.stdout)
    assert (told["built"], value_in(told["folder"])) == (True, "42")
    again = runyard("env", "build", "--kind", "uv", cwd=project)
    assert "is there already" in again.stderr
    assert again.stdout.strip() == told["folder"]
    checked = runyard("env", "check", "--kind", "uv", "--build", cwd=project)
    assert checked.returncode == 0, checked.stdout
    assert "advice  wandb" in checked.stdout
    (project / "requirements.txt").write_text("")
    other = runyard("env", "build", "--kind", "uv", cwd=project)
    assert other.stdout.strip() != told["folder"]


def test_a_virtual_environment_is_built_with_pip(
    runyard: RunRunyard, state_folder: Home, project: Path
) -> None:
    done = runyard("env", "build", "--kind", "venv", cwd=project, timeout=180)  # pip takes long.
    assert done.returncode == 0, done.stderr
    assert value_in(done.stdout.strip()) == "42"


def test_a_uv_lock_is_installed_as_it_stands(
    runyard: RunRunyard, state_folder: Home, project: Path
) -> None:
    wheel = f"{PACKAGE}-1.0-py3-none-any.whl"
    (project / "pyproject.toml").write_text(
        '[project]\nname = "x"\nversion = "0"\nrequires-python = ">=3.10"\n'
        f'dependencies = ["{PACKAGE}"]\n'
        f'[tool.uv.sources]\n{PACKAGE} = {{ path = "{wheel}" }}\n'
    )
    subprocess.run(["uv", "lock", "--quiet"], cwd=project, check=True)
    done = runyard("env", "build", "--kind", "uv", cwd=project)
    assert done.returncode == 0, done.stderr
    assert value_in(done.stdout.strip()) == "42"
    assert not (project / ".venv").exists()


def test_a_failed_build_leaves_nothing_and_quotes_the_tool(
    runyard: RunRunyard, state_folder: Home, project: Path
) -> None:
    (project / "requirements.txt").write_text("no-such-package-anywhere\n")
    done = runyard("env", "build", "--kind", "uv", cwd=project)
    assert done.returncode == 1
    assert "no-such-package-anywhere" in done.stderr
    assert "Traceback" not in done.stderr
    left = [one.name for one in (state_folder.path / "environments").iterdir() if one.is_dir()]
    assert left == []


def test_two_builds_at_once_and_a_killed_one_leave_one_whole_environment(
    runyard: RunRunyard,
    state_folder: Home,
    project: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate, uv = tmp_path / "gate", shutil.which("uv")
    slow = tmp_path / "bin" / "uv"
    slow.parent.mkdir()
    slow.write_text(
        f'#!/bin/sh\n: >"{tmp_path}/up"\nwhile [ ! -e "{gate}" ]; do sleep 0.05; done\n'
        f'exec {uv} "$@"\n'
    )
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}:{os.environ['PATH']}")
    build = [*RUNYARD, "env", "build", "--kind", "uv"]
    killed = subprocess.Popen(build, cwd=project, stderr=subprocess.DEVNULL)
    until((tmp_path / "up").exists, "a build under way")
    os.kill(killed.pid, signal.SIGKILL)  # Not what it started: that goes on, and is waited for.
    killed.wait()
    both = [
        subprocess.Popen(
            build, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    for process in both:
        assert process.stderr is not None
        line = next(line for line in process.stderr if "building the" not in line)
        assert "is under way: waiting" in line
    gate.touch()
    told = [process.communicate(timeout=90) for process in both]
    assert [process.returncode for process in both] == [0, 0], told
    (folder,) = {out.strip() for out, _ in told}
    assert value_in(folder) == "42"
    assert len(list((state_folder.path / "environments").glob("*.runyard-built.json"))) == 1
