"""`./test` tries the few tests that fail beside others once more, alone, and wants their cause."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.order import read_seconds

SUITE = Path(__file__).parents[1] / "scripts" / "suite.py"
PASSES = "def test_passes(): pass\n"
# The first time it fails, and leaves a note that it was there.
FAILS_ONCE = """
import os, pathlib, pytest
@pytest.mark.parametrize("what", ["a b::c[d]"])
def test_fails_once(what):
    note = pathlib.Path("been-there")
    was_there = note.exists()
    note.touch()
    assert was_there, "starved by its neighbours"
    assert "PYTEST_XDIST_WORKER" not in os.environ
"""
SKIPPED_AFTERWARDS = """
import pathlib, pytest
def test_is_skipped_afterwards():
    if pathlib.Path("tried").exists():
        pytest.skip("not here")
    pathlib.Path("tried").touch()
    assert False, "at first"
"""
BREAKS_AT_ITS_END = """
import pytest
@pytest.fixture
def ends_badly():
    yield
    raise OSError("left open")
def test_breaks_at_its_end(ends_badly): pass
"""


def run_suite(
    folder: Path, *words: str, environ: dict[str, str] | None = None, **files: str
) -> subprocess.CompletedProcess[str]:
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not {"PYTEST", "RUNYARD", "CI"} & set(name.split("_"))
    }
    return subprocess.run(
        [sys.executable, SUITE, "-p", "xdist", "-p", "no:cacheprovider", *words],
        env={**inherited, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **(environ or {})},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


ONCE = "test_once.py::test_fails_once[a b::c[d]]"


def write_flakes(folder: Path, *names: str) -> None:
    (folder / "docs").mkdir()
    rows = "".join(f"| `{name}` | the cause | what is to be done |\n" for name in names)
    (folder / "docs" / "flakes.md").write_text(
        f"# Flakes\n\n| test | a | b |\n|---|---|---|\n{rows}"
    )


def test_what_passes_alone_is_named_and_passes_where_its_cause_is_known(tmp_path: Path) -> None:
    write_flakes(tmp_path, ONCE)
    done = run_suite(tmp_path, "-n2", "--dist", "loadfile", fine=PASSES, once=FAILS_ONCE)
    assert done.returncode == 0, done.stdout
    assert f"== once more, alone: {ONCE}\n" in done.stdout
    assert "starved by its neighbours" in done.stdout
    assert done.stdout.endswith(f"failed at first, passed alone: {ONCE}\n")
    # The next run begins with those that took longest.
    assert set(read_seconds(tmp_path)) == {"test_fine.py", "test_once.py"}


def test_what_passes_alone_and_nobody_knows_why_is_to_be_looked_into(tmp_path: Path) -> None:
    write_flakes(tmp_path, "test_once.py::test_another")
    done = run_suite(tmp_path, fine=PASSES, once=FAILS_ONCE)
    assert done.returncode == 0, done.stdout
    assert done.stdout.endswith(
        f"failed at first, passed alone: {ONCE}\n"
        f"no line of docs/flakes.md says why it failed at first: {ONCE}\n"
    )


def test_three_open_flakes_are_too_many(tmp_path: Path) -> None:
    write_flakes(tmp_path, ONCE, "a.py::test_b", "a.py::test_c")
    done = run_suite(tmp_path, fine=PASSES)
    assert done.returncode == 1
    assert "docs/flakes.md has 3 lines, and 2 are allowed" in done.stdout


def test_every_line_of_the_page_is_a_test_that_is_there() -> None:
    root = SUITE.parents[1]
    page = (root / "docs" / "flakes.md").read_text()
    names = re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)
    assert len(names) <= 2
    for name in names:
        file, _, test = name.partition("::")
        assert f"def {test.partition('[')[0]}(" in (root / file).read_text()


def test_the_slowest_files_are_told(tmp_path: Path) -> None:
    slow = "import time\ndef test_slow(): time.sleep(0.3)\n"
    done = run_suite(tmp_path, fine=PASSES, slow=slow)
    assert done.returncode == 0
    head = "== the slowest files: seconds of their tests, and of the processor\n"
    lines = [line.split() for line in done.stdout.partition(head)[2].splitlines()]
    assert [line[2] for line in lines] == ["test_slow.py", "test_fine.py"]


def test_what_does_not_pass_the_second_time_fails_the_run(tmp_path: Path) -> None:
    never = "def test_never(): assert False\n"
    done = run_suite(
        tmp_path, once=FAILS_ONCE, never=never, skip=SKIPPED_AFTERWARDS, end=BREAKS_AT_ITS_END
    )
    assert done.returncode == 1, done.stdout
    *_, one, two, three, four, _ = done.stdout.splitlines()
    assert one.startswith("failed at first, passed alone: test_once.py::")
    assert [two, three, four] == [
        "failed twice: test_end.py::test_breaks_at_its_end",
        "failed twice: test_never.py::test_never",
        "failed twice: test_skip.py::test_is_skipped_afterwards",
    ]


def test_many_failures_are_no_chance(tmp_path: Path) -> None:
    six = "".join(f"def test_{number}(): assert False\n" for number in range(6))
    done = run_suite(tmp_path, six=six)
    assert done.returncode == 1
    assert done.stdout.endswith("== 6 tests failed: too many for chance, none is tried again\n")
    assert done.stdout.count("6 failed") == 1
