"""Slow test files are left out while nothing changes that they depend on, and only then."""

from __future__ import annotations

import re
import subprocess
from datetime import date
from pathlib import Path

import pytest

from tests.green_files import (
    ALWAYS,
    COMMITTED,
    OF_THIS_MACHINE,
    SLOW_FOLDERS,
    Checkout,
    GreenFile,
    find_green,
    green_of_run,
    is_switched,
    outcomes_of,
    read_green,
    write_green,
)
from tests.requirements import NamedTest, Row
from tests.test_suite import PASSES, run_suite

ROOT = Path(__file__).parents[1]
# As tests ask for their switches; programs in tests ask so for what runyard tells them.
_ASKED_FOR = re.compile(r"environ\.get\(\"(RUNYARD_[A-Z_]+)\"")
_OF_PROGRAMS = {"RUNYARD_ATTEMPT", "RUNYARD_DEADLINE"}
TODAY = date(2026, 3, 20)
SLURM, LIVE = "tests/slurm/test_jobs.py", "tests/live/test_page_words.py"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small checkout: one of two slow files reads a page by its helper, and imports
    something of the other."""
    write(tmp_path, "src/runyard/core.py", "A = 1")
    write(tmp_path, "docs/page.md", "words")
    write(tmp_path, "README.md", "words")
    write(tmp_path, "tests/server/test_quick.py", PASSES)
    write(tmp_path, "tests/slurm/rig.py", "B = 1")
    write(tmp_path, "tests/slurm/reader.py", 'PAGE = "docs/page.md"')
    write(tmp_path, SLURM, PASSES)
    write(tmp_path, LIVE, "from tests.slurm import reader\nfrom tests.slurm.test_jobs import a\n")
    write(tmp_path, ".gitignore", ".cache/\n__pycache__/\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


@pytest.mark.parametrize(
    ("changed", "run_again"),
    [
        ("src/runyard/core.py", {SLURM, LIVE}),
        ("src/runyard/new.py", {SLURM, LIVE}),
        ("tests/slurm/rig.py", {SLURM, LIVE}),
        ("pyproject.toml", {SLURM, LIVE}),
        (SLURM, {SLURM, LIVE}),
        (LIVE, {LIVE}),
        ("docs/page.md", {LIVE}),
        ("README.md", {SLURM, LIVE}),
        ("CHANGELOG.md", set()),
        ("tests/server/test_quick.py", set()),
        ("tests/slurm/test_another.py", set()),
        (".cache/seconds", set()),
    ],
)
def test_what_changes_decides_which_files_run_again(
    folder: Path, changed: str, run_again: set[str]
) -> None:
    before = Checkout(folder).inputs
    assert before.keys() == {SLURM, LIVE}
    text = (folder / changed).read_text() if (folder / changed).exists() else ""
    write(folder, changed, text + "\n# changed\n")
    after = Checkout(folder).inputs
    assert {file for file in before if before[file] != after[file]} == run_again


def test_a_removed_file_counts_as_a_change(folder: Path) -> None:
    before = Checkout(folder).inputs
    (folder / "src/runyard/core.py").unlink()
    assert Checkout(folder).inputs[SLURM] != before[SLURM]


@pytest.mark.parametrize(
    ("record", "in_ci", "is_green"),
    [
        ({}, False, True),
        ({}, True, True),
        ({"in_ci": False}, False, True),
        ({"in_ci": False}, True, False),
        ({"inputs": "of older code"}, False, False),
        ({"day": "2026-03-06"}, True, True),
        ({"day": "2026-03-05"}, True, False),
    ],
)
def test_a_record_holds_for_its_inputs_for_two_weeks(
    folder: Path, record: dict[str, str | bool], in_ci: bool, is_green: bool
) -> None:
    checkout = Checkout(folder)
    fields = {"inputs": checkout.inputs[SLURM], "day": "2026-03-20", "in_ci": True, **record}
    known = [{}, {SLURM: GreenFile(**fields)}]  # type: ignore[arg-type]
    assert set(find_green(checkout, known, TODAY, in_ci=in_ci)) == ({SLURM} if is_green else set())


def test_only_a_file_of_which_nothing_failed_is_green(folder: Path) -> None:
    checkout = Checkout(folder)
    ended = {f"{SLURM}::test_a[1]": "skipped", f"{SLURM}::test_a[2]": "passed",
             f"{SLURM}::test_b": "skipped", f"{LIVE}::test_c": "passed"}  # fmt: skip
    green = green_of_run(checkout, ended, TODAY, in_ci=True)
    assert green[SLURM] == GreenFile(checkout.inputs[SLURM], "2026-03-20", True, ("test_b",))
    assert set(
        green_of_run(checkout, {**ended, f"{LIVE}::test_d": "failed"}, TODAY, in_ci=True)
    ) == {SLURM}
    assert green_of_run(checkout, {f"{LIVE}::test_c": "skipped"}, TODAY, in_ci=True) == {}
    rows = [Row("S0.1", "", tuple(NamedTest(f"{SLURM}::{name}") for name in ("test_a", "test_b")))]
    rows.append(Row("S0.2", "", (NamedTest("tests/server/test_quick.py::test_passes"),)))
    assert outcomes_of(green, rows) == {f"{SLURM}::test_a": "passed", f"{SLURM}::test_b": "skipped"}


def test_records_are_read_as_written_and_what_is_no_record_counts_for_nothing(
    tmp_path: Path,
) -> None:
    file = tmp_path / "green.json"
    green = {SLURM: GreenFile("abc", "2026-03-20", True, ("test_b",))}
    write_green(green, file)
    assert read_green(file) == green
    assert read_green(tmp_path / "none.json") == {}
    for text in ("{", "[]", '{"a": 1}', '{"a": {"inputs": "x"}}', '{"a": {"skipped": []}}'):
        file.write_text(text)
        assert read_green(file) == {}


def test_the_second_run_leaves_out_what_passed_and_a_change_brings_it_back(folder: Path) -> None:
    write(folder, LIVE, "def test_fails(): assert False\n")
    green = OF_THIS_MACHINE
    assert run_suite(folder).returncode == 1
    assert set(read_green(folder / green)) == {SLURM}, "what failed is no proof"
    write(folder, LIVE, PASSES)

    again = run_suite(folder)
    assert again.returncode == 0
    assert "== 1 slow test files passed on the very same code" in again.stdout
    assert "2 passed" in again.stdout
    assert "1 passed" in run_suite(folder).stdout, "the quick one"

    write(folder, "src/runyard/core.py", "A = 2")
    assert "3 passed" in run_suite(folder).stdout


@pytest.mark.parametrize(
    ("words", "environ"),
    [
        (("-k", "test_passes"), {}),
        ((SLURM,), {}),
        (("-x",), {}),
        ((), {"PYTEST_ADDOPTS": "-k test_passes"}),
        ((), {"RUNYARD_KILLS": "1"}),
        ((), {"RUNYARD_LONG_JOBS": "1"}),
    ],
)
def test_a_run_of_some_tests_or_of_others_leaves_no_record_and_leaves_nothing_out(
    folder: Path, words: tuple[str, ...], environ: dict[str, str]
) -> None:
    write(folder, LIVE, PASSES)
    record = GreenFile(Checkout(folder).inputs[SLURM], "2026-03-20", True)
    write_green({SLURM: record}, folder / OF_THIS_MACHINE)
    done = run_suite(folder, *words, environ=environ)
    assert done.returncode == 0
    assert "on the very same code" not in done.stdout
    assert f"{1 if words == (SLURM,) else 3} passed" in done.stdout
    assert read_green(folder / OF_THIS_MACHINE) == {SLURM: record}


def test_every_test_runs_where_that_is_asked_for_and_is_recorded(folder: Path) -> None:
    write(folder, LIVE, PASSES)
    assert "3 passed" in run_suite(folder, environ={"CI": "1"}).stdout
    assert "3 passed" in run_suite(folder, environ={"RUNYARD_EVERY_TEST": "1"}).stdout
    green = read_green(folder / OF_THIS_MACHINE)
    assert green.keys() == {SLURM, LIVE}
    assert all(record.in_ci for record in green.values()), "a run that proves less replaces none"


def test_a_test_file_that_is_half_written_ends_nothing_but_itself(folder: Path) -> None:
    write(folder, LIVE, "def test_")
    assert Checkout(folder).inputs.keys() == {SLURM, LIVE}


def test_switches_of_slow_tests_are_known() -> None:
    """One that is missing in the list would be taken for what every run does."""
    named = set[str]()
    for name in SLOW_FOLDERS:
        for file in (ROOT / "tests" / name).rglob("*.py"):
            named |= set(_ASKED_FOR.findall(file.read_text()))
    assert "RUNYARD_LONG_JOBS" in named
    assert {name for name in named if not is_switched([name])} == _OF_PROGRAMS
    assert not is_switched(["PATH", "RUNYARD_HOME", "RUNYARD_EVERY_TEST"])


def test_files_that_always_run_and_records_that_are_committed_are_there() -> None:
    for file in ALWAYS:
        assert (ROOT / file).exists(), file
    with_one_that_always_runs = {Path(file).parts[1] for file in ALWAYS}
    assert with_one_that_always_runs == set(SLOW_FOLDERS) - {"tutorials"}
    assert all(record.in_ci for record in read_green(ROOT / COMMITTED).values())
