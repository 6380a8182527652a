"""A command that is forked from a warm process does what one in a fresh process does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from runyard.home import Home
from tests import warm_commands
from tests.warm_commands import run_warm

_SAYS_ALL = 'echo "$WHO"; pwd; umask; cat; echo aside >&2; exit 3'


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--version"], 0),
        (["help", "runs"], 0),
        (["nosuch"], 2),
        (["run", "-q", "sh", "-c", _SAYS_ALL], 3),
        (["run", "-q", "sh", "-c", "kill -9 $$"], -9),
    ],
)
def test_it_ends_and_speaks_alike(
    words: list[str],
    code: int,
    state_folder: Home,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    before = os.umask(0o027)
    request.addfinalizer(lambda: os.umask(before))
    environment = {**os.environ, "WHO": "me"}
    subprocess.run([sys.executable, "-m", "runyard", "runs"], env=environment, capture_output=True)
    warm = run_warm(words, environment, tmp_path, "a line\n", 180)
    fresh = subprocess.run(
        [sys.executable, "-m", "runyard", *words],
        env=environment, cwd=tmp_path, input="a line\n", capture_output=True, text=True,
    )  # fmt: skip
    assert warm is not None
    assert (warm.returncode, warm.stdout, warm.stderr) == (code, fresh.stdout, fresh.stderr)
    assert fresh.returncode == code


def test_a_first_test_with_variables_of_its_own_spoils_it_for_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm_commands, "_warm", None)
    environment = {**os.environ, "PYTHONUSERBASE": str(tmp_path)}
    assert run_warm(["--version"], environment, tmp_path, "", 180) is None
    assert run_warm(["--version"], dict(os.environ), tmp_path, "", 180)


def test_what_python_reads_at_its_start_takes_a_fresh_process(tmp_path: Path) -> None:
    environment = dict(os.environ)
    assert run_warm(["--version"], environment, tmp_path, "", 180)
    environment["PYTHONIOENCODING"] = "ascii"
    assert run_warm(["--version"], environment, tmp_path, "", 180) is None
