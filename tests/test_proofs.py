"""The gate at the end of `./test`: a row whose test did not run is not proved."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

from tests.proofs import find_unproved
from tests.requirements import Row, read_tests

SCRIPTS = Path(__file__).parents[1] / "scripts"
A, B = "tests/test_a.py::test_a", "tests/test_a.py::test_b"
LONG = f"{B} (TINY_LONG=1)"
DAY = date(2026, 3, 20)
TESTS = """
import os, pytest
@pytest.mark.parametrize("number", [1, 2])
def test_a(number):
    if number == 2:
        pytest.skip("not here")
@pytest.mark.skipif(not os.environ.get("TINY_LONG"), reason="TINY_LONG=1 runs it")
def test_b(): pass
def test_c(): assert not os.environ.get("TINY_LONG")
"""


def row(proof: str) -> Row:
    return Row("S0.1", "true", read_tests(proof))


@pytest.mark.parametrize(
    ("ended", "reason"),
    [
        ({A: "passed"}, None),
        ({f"{A}[x::y]": "passed", f"{A}[z[0]]": "skipped"}, None),
        ({f"{A}[x]": "skipped", f"{A}[y]": "skipped"}, "skipped"),
        ({A: "skipped"}, "skipped"),
        ({f"{A}[x]": "passed", f"{A}[y]": "failed"}, "failed"),
        ({f"{A}_more": "passed"}, "did not run"),
        ({}, "did not run"),
    ],
)
def test_a_row_is_proved_by_a_test_that_passed(ended: dict[str, str], reason: str | None) -> None:
    lines = find_unproved([row(A)], ended, {}, {}, DAY)
    assert lines == ([f"S0.1  {A}: {reason}"] if reason else [])


def test_each_test_of_a_row_counts() -> None:
    lines = find_unproved([row(f"{A}, {B}")], {A: "passed", B: "skipped"}, {}, {}, DAY)
    assert lines == [f"S0.1  {B}: skipped"]


@pytest.mark.parametrize(
    ("day", "is_fresh"), [("2026-03-20", True), ("2026-03-06", True), ("2026-03-05", False)]
)
def test_a_long_form_holds_for_two_weeks_of_commits(day: str, is_fresh: bool) -> None:
    records = {LONG: {"date": day, "commit": "abc"}}
    lines = find_unproved([row(LONG)], {B: "skipped"}, {}, records, DAY)
    assert lines == (
        [] if is_fresh else [f"S0.1  {LONG}: its last green run ({day}) is 15 days older than "
                             "this commit"]
    )  # fmt: skip


def test_a_record_without_the_switch_is_of_another_test() -> None:
    records = {B: {"date": "2026-03-20", "commit": "abc"}}
    (line,) = find_unproved([row(LONG)], {B: "passed"}, {}, records, DAY)
    assert "no green run of it is recorded" in line, "the short form passed, the long one did not"


def test_a_long_form_that_ran_needs_no_record() -> None:
    assert find_unproved([row(LONG)], {B: "passed"}, {"TINY_LONG": "1"}, {}, DAY) == []


def test_what_is_not_built_needs_no_proof() -> None:
    assert find_unproved([Row("S0.1", "true", (), "nobody needs it")], {}, {}, {}, DAY) == []


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for folder in ("docs", "tests"):
        (tmp_path / folder).mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / ".gitignore").write_text("__pycache__\n.pytest_cache\n")
    (tmp_path / "tests" / "test_a.py").write_text(TESTS)
    (tmp_path / "docs" / "requirements.md").write_text(
        f"| id | a | b |\n|---|---|---|\n| S0.1 | true | {A} |\n| S0.2 | true | {LONG} |\n"
        f"| S0.3 | true | {B.replace('test_b', 'test_c')} (TINY_LONG=1) |\n"
    )
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "all")
    return tmp_path


def git(folder: Path, *words: str) -> None:
    known = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", *known, *words], cwd=folder, check=True, capture_output=True)


def run_script(
    folder: Path, name: str, *words: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    environ = {
        name: value for name, value in os.environ.items() if "PYTEST" not in name and name != "CI"
    }
    return subprocess.run(
        [sys.executable, SCRIPTS / name, *words],
        cwd=folder,
        env={**environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_ci_fails_where_a_row_is_not_proved(project: Path) -> None:
    elsewhere = run_script(project, "suite.py")
    assert elsewhere.returncode == 0, elsewhere.stdout + elsewhere.stderr
    assert "== not proved by this run, of docs/requirements.md: 2\n" in elsewhere.stdout
    assert f"S0.2  {LONG}: no green run" in elsewhere.stdout
    assert "S0.1" not in elsewhere.stdout
    assert run_script(project, "suite.py", CI="1").returncode == 1


def test_the_long_forms_that_pass_are_recorded_and_let_ci_pass(project: Path) -> None:
    done = run_script(project, "long_forms.py")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "not green, not recorded: tests/test_a.py::test_c (TINY_LONG=1)" in done.stdout
    kept = project / "tests" / "long_forms.json"
    records = json.loads(kept.read_text())
    assert list(records) == [LONG]
    assert set(records[LONG]) == {"date", "commit"}
    assert (
        f"never  {B.replace('test_b', 'test_c')}"
        in run_script(project, "long_forms.py", "--list").stdout
    )
    page = project / "docs" / "requirements.md"
    page.write_text("".join(page.read_text().splitlines(keepends=True)[:-1]))
    git(project, "commit", "-q", "-a", "-m", "without the third")
    assert run_script(project, "suite.py", CI="1").returncode == 0
    records[LONG]["date"] = "2020-01-01"
    kept.write_text(json.dumps(records))
    assert "days older than this commit" in run_script(project, "suite.py", CI="1").stdout


def test_what_is_recorded_was_committed(project: Path) -> None:
    (project / "tests" / "test_a.py").write_text(TESTS + "# changed\n")
    done = run_script(project, "long_forms.py")
    assert done.returncode == 2
    assert "commit first" in done.stdout
    assert not (project / "tests" / "long_forms.json").exists()
