"""A submission whose output goes to a file of the project, and one that comes to nothing.

`sbatch` is a stand-in: what is copied, made and deleted before and after it is the matter here.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from runyard.actions.events import ignore
from runyard.actions.submitting import submission
from runyard.actions.submitting.submission import Submission
from runyard.client.discover import ensure_server
from runyard.errors import UsageError
from runyard.home import Home
from runyard.launch import serving
from runyard.launch.snapshot import Snapshot, folder_of, look
from tests.launch.planning import planned, request
from tests.node.terminals import RUNYARD

TAKES = "cat >/dev/null; echo 7"
REFUSES = "echo 'sbatch: error: Batch job submission failed: Invalid account specified' >&2; exit 1"
FILE = {"program": "train.py", "method": "grid", "parameters": {"lr": {"values": [1, 2]}}}


@pytest.fixture
def project(tmp_path: Path, state_folder: Home) -> Path:
    folder = tmp_path / "cats"
    folder.mkdir()
    (folder / "train.py").write_text("import argparse\nargparse.ArgumentParser()\n")
    (folder / "sweep.yaml").write_text(json.dumps(FILE))
    return folder


def shell(project: Path, line: str, sbatch: str) -> subprocess.CompletedProcess[str]:
    """Run a line of shell in which `runyard` is ours and sbatch says what it is to say."""
    commands = project.parent / "bin"
    commands.mkdir(exist_ok=True)
    runyard = shlex.join(RUNYARD)
    for name, text in (("sbatch", sbatch), ("scontrol", "true"), ("runyard", f'{runyard} "$@"')):
        (commands / name).write_text(f"#!/bin/sh\n{text}\n")
        (commands / name).chmod(0o755)
    path = f"{commands}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line], cwd=project, env={**os.environ, "PATH": path},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def copied(home: Home) -> list[dict[str, object]]:
    """The files of each copy of the code."""
    found = sorted((home.path / "snapshots").glob("*/manifest.json"))
    return [json.loads(file.read_text())["files"] for file in found]


SWEEP = "runyard sweep sweep.yaml --no-check --on slurm --yes"


@pytest.mark.parametrize(
    "line", [f"{SWEEP} >out.txt 2>&1", f"{SWEEP} 2>&1 | cat | tee -a out.txt >/dev/null"]
)
def test_what_the_command_itself_writes_to_is_not_copied(
    project: Path, state_folder: Home, line: str
) -> None:
    done = shell(project, line, TAKES)
    said = (project / "out.txt").read_text()
    assert done.returncode == 0, said
    assert "job 7: 2 agents" in said
    (files,) = copied(state_folder)
    assert "train.py" in files
    assert "out.txt" not in files


def test_a_submission_that_is_refused_leaves_no_sweep(project: Path, state_folder: Home) -> None:
    done = shell(project, SWEEP, REFUSES)
    assert done.returncode == 1
    assert "Invalid account" in done.stderr
    assert ensure_server(state_folder).api.sweeps.sweeps() == []


def ready_to_copy(project: Path, home: Home) -> Submission:
    """A submission of the project as it is now."""
    asked, copy = request(), look(project)
    made = planned(asked)
    return Submission(
        plan=made,
        request=asked,
        home=home,
        make=lambda _agents: made,
        settle=lambda _dry: made.wrapping,
        again=lambda: ready_to_copy(project, home),
        copy=copy,
    )


def test_a_file_that_changes_under_the_copy_is_copied_again(
    project: Path, state_folder: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "server_for_jobs", lambda *_: None)
    monkeypatch.setattr(submission, "_COPY_PAUSE", 0.0)
    first = ready_to_copy(project, state_folder)
    (project / "train.py").write_text("print('saved by an editor')\n")
    copy = first.make_ready(ignore).copy
    assert copy is not None
    stored = folder_of(state_folder.path, copy) / "train.py"
    assert stored.read_text() == "print('saved by an editor')\n"


def test_a_file_that_never_rests_is_named_before_anything_is_sent(
    project: Path, state_folder: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look_and_write(root: Path) -> Snapshot:
        found = look(root)
        with (project / "busy.txt").open("a") as file:
            file.write("x")
        return found

    monkeypatch.setattr(serving, "server_for_jobs", lambda *_: None)
    monkeypatch.setattr(submission, "_COPY_PAUSE", 0.0)
    (project / "busy.txt").touch()
    first = ready_to_copy(project, state_folder)
    restless = replace(
        first,
        copy=look_and_write(project),
        again=lambda: replace(restless, copy=look_and_write(project)),
    )
    with pytest.raises(UsageError, match=r"busy\.txt keeps changing"):
        restless.make_ready(ignore)
