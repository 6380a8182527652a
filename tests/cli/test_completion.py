"""Completion, asked as a shell asks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import RunRunyard

pytestmark = pytest.mark.live


def completed(line: str, folder: Path) -> list[str]:
    """What the program offers for this line, by argcomplete's protocol."""
    told = folder / "told"
    told.write_text("")
    environment = {
        **os.environ,
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(told),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    done = subprocess.run(
        [sys.executable, "-m", "runyard"], env=environment, capture_output=True, check=False
    )
    assert b"Traceback" not in done.stderr
    return sorted(word.strip() for word in told.read_text().split("\n") if word.strip())


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("runyard ru", ["run", "runs"]),
        ("runyard sh", ["shell", "show"]),
        ("runyard server st", ["start", "status", "stop"]),
        ("runyard runs --st", ["--state"]),
        ("runyard runs --state f", ["failed", "finished"]),
        ("runyard completion b", ["bash"]),
        ("runyard xyzzy", []),
    ],
)
@pytest.mark.usefixtures("state_folder")
def test_words_are_offered(line: str, offered: list[str], tmp_path: Path) -> None:
    assert completed(line, tmp_path) == offered


@pytest.mark.usefixtures("state_folder")
def test_every_command_and_its_options_are_offered(tmp_path: Path) -> None:
    assert {"run", "runs", "show", "logs", "server"} <= set(completed("runyard ", tmp_path))
    assert {"--name", "--project", "--tag"} <= set(completed("runyard run --", tmp_path))


def test_ids_of_runs_are_offered(runyard: RunRunyard, tmp_path: Path) -> None:
    for run_id in ("abc1", "abc2", "xyz3"):
        runyard("run", "-q", "true", env={"WANDB_RUN_ID": run_id})
    assert completed("runyard show ab", tmp_path) == ["abc1", "abc2"]
    assert completed("runyard logs x", tmp_path) == ["xyz3"]
    runyard("server", "stop")
    assert completed("runyard show ab", tmp_path) == []
    assert runyard("server", "status").returncode == 3  # Completing starts nothing.


def test_a_real_bash_completes(runyard: RunRunyard, tmp_path: Path) -> None:
    """The printed script is evaluated, and its function called as bash calls it."""
    program = tmp_path / "runyard"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m runyard "$@"\n')
    program.chmod(0o755)
    script = """
        eval "$(runyard completion bash)"
        function=$(complete -p runyard | sed -E 's/.*-F ([^ ]+).*/\\1/')
        COMP_WORDS=(runyard ru) COMP_CWORD=1 COMP_LINE='runyard ru' COMP_POINT=10 COMP_TYPE=9
        "$function" runyard ru runyard
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    done = subprocess.run(
        ["bash", "-c", script],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert sorted(done.stdout.split()) == ["run", "runs"]
    assert done.stderr == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "tcsh"])
def test_every_shell_has_a_script(runyard: RunRunyard, shell: str) -> None:
    done = runyard("completion", shell)
    assert done.returncode == 0
    assert "runyard" in done.stdout
