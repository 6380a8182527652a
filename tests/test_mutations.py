"""`scripts/mutations.py` tells a test that proves its row from one that does not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

SCRIPT = Path(__file__).parents[1] / "scripts" / "mutations.py"
CODE = '''"""A tiny program."""
import os

def add(a, b):
    return a + b

def greet():
    return "hello"
'''
TESTS = """
import os, time, pathlib, pytest
import tiny

def test_add():
    assert tiny.add(1, 2) == 3

def test_greets_nobody():
    tiny.greet()

@pytest.mark.skipif(not os.environ.get("TINY_LONG"), reason="TINY_LONG=1 runs it")
def test_long():
    assert tiny.add(1, 2) == 3

def test_skipped():
    pytest.skip("no GPU")

@pytest.fixture
def three():
    assert tiny.add(1, 2) == 3

@pytest.fixture
def one():
    return {3: 1}[tiny.add(1, 2)]

def test_by_a_fixture(three): pass

def test_by_a_broken_fixture(one): pass

def test_imports_late():
    import late

def test_waits():
    if tiny.add(1, 2) == 3:
        return
    pathlib.Path("waits").touch()
    time.sleep(600)
"""
LATE = "from tiny import greet\n"
ADD = {"file": "tiny.py", "replace": "a + b", "by": "a - b"}
GREET = {"file": "tiny.py", "replace": '"hello"', "by": '"nothing"'}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """With a table of one row for each of its tests."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "tests" / "mutations").mkdir(parents=True)
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    (tmp_path / "tiny.py").write_text(CODE)
    (tmp_path / "late.py").write_text(LATE)
    (tmp_path / "tests" / "test_tiny.py").write_text(TESTS)
    write_table(
        tmp_path,
        "test_add",
        "test_greets_nobody",
        "test_long (TINY_LONG=1)",
        "test_skipped",
        "test_by_a_fixture",
        "test_by_a_broken_fixture",
        "test_imports_late",
        "test_waits",
    )
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    return tmp_path


def write_table(folder: Path, *tests: str) -> None:
    rows = "".join(
        f"| S0.{number} | true | tests/test_tiny.py::{test} |\n"
        for number, test in enumerate(tests, start=1)
    )
    built = "| S1.1 | more | not built: nobody needs it |\n"
    (folder / "docs" / "requirements.md").write_text(
        f"| id | a | b |\n|---|---|---|\n{rows}{built}"
    )


def git(folder: Path, *words: str) -> None:
    known = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", *known, *words], cwd=folder, check=True, capture_output=True)


def commit(folder: Path) -> None:
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "all")


def write_entries(folder: Path, owner: str = "us", **rows: dict[str, str]) -> None:
    entries = {row.replace("_", "."): entry for row, entry in rows.items()}
    (folder / "tests" / "mutations" / f"{owner}.yaml").write_text(yaml.safe_dump(entries))


def environment() -> dict[str, str]:
    environ = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    return {**environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "CI": "1"}


def mutate(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, SCRIPT, *words],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (folder / "tiny.py").read_text() == CODE, "the file was not put back"
    return done


def read_results(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    lines = done.stdout.partition("\n== ")[0].splitlines()
    return {line.split()[0]: line.split()[1] for line in lines}


def test_red_and_green_and_what_proves_nothing_are_told_apart(project: Path) -> None:
    """The first three rows are what an owner sees; a test that did not run is never red."""
    late = {"file": "late.py", "replace": "import greet", "by": "import nothing"}
    write_entries(
        project,
        S0_1=ADD,
        S0_2=GREET,
        S0_3=ADD,
        S0_4=ADD,
        S0_5=ADD,
        S0_6=ADD,
        S0_7=late,
        S0_8={"none": "it would take ten minutes"},
    )
    done = mutate(project)
    assert done.returncode == 1, done.stderr
    assert read_results(done) == {
        "S0.1": "red",
        "S0.2": "green",
        "S0.3": "red",  # Its switch was set.
        "S0.4": "skipped",
        "S0.5": "red",
        "S0.6": "broken",
        "S0.7": "broken",
    }
    assert "test_add: assert -1 == 3" in done.stdout
    assert "no GPU" in done.stdout
    assert "== rows in the table: 9, tried: 7\nred: 3\ngreen: 1 S0.2\n" in done.stdout
    assert "skipped: 1 S0.4\nbroken: 2 S0.6 S0.7\n" in done.stdout
    assert "none: 2\n  S1.1  nobody needs it\n  S0.8  it would take ten minutes\n" in done.stdout
    assert (project / "late.py").read_text() == LATE


@pytest.mark.parametrize(
    ("by", "reason"), [("return a +", "SyntaxError"), ("raise ImportError", "ImportError")]
)
def test_code_that_cannot_be_loaded_is_no_proof(by: str, reason: str, project: Path) -> None:
    write_entries(project, S0_1={"file": "tiny.py", "replace": "import os", "by": by})
    done = mutate(project, "S0.1")
    assert read_results(done) == {"S0.1": "broken"}
    assert reason in done.stdout


def test_a_test_that_is_not_there_is_no_proof(project: Path) -> None:
    write_table(project, "test_gone")
    write_entries(project, S0_1=ADD)
    assert read_results(mutate(project)) == {"S0.1": "broken"}


def test_one_of_several_tests_can_be_the_deciding_one(project: Path) -> None:
    write_table(project, "test_greets_nobody, tests/test_tiny.py::test_add")
    write_entries(project, S0_1={**ADD, "test": "tests/test_tiny.py::test_greets_nobody"})
    assert read_results(mutate(project)) == {"S0.1": "green"}
    write_entries(project, S0_1={**ADD, "test": "tests/test_tiny.py::test_add"})
    done = mutate(project, "--seed", "S0")
    assert read_results(done) == {"S0.1": "red"}
    assert done.returncode == 0


def test_a_file_with_changes_of_yours_is_refused(project: Path) -> None:
    write_entries(project, S0_1=ADD)
    changed = CODE + "# mine\n"
    (project / "tiny.py").write_text(changed)
    done = subprocess.run(
        [sys.executable, SCRIPT], cwd=project, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "tiny.py has uncommitted changes" in done.stderr
    assert (project / "tiny.py").read_text() == changed


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_file_is_put_back_when_it_is_interrupted(number: int, project: Path) -> None:
    write_entries(project, S0_8=ADD)
    process = subprocess.Popen(
        [sys.executable, SCRIPT, "S0.8"],
        cwd=project,
        env=environment(),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    patience = time.monotonic() + 180
    while not (project / "waits").exists():
        assert time.monotonic() < patience
        assert process.poll() is None
        time.sleep(0.05)
    assert "a - b" in (project / "tiny.py").read_text()
    process.send_signal(number)
    assert process.wait(180) == 128 + number
    assert (project / "tiny.py").read_text() == CODE


def test_results_are_kept_beside_the_entries(project: Path) -> None:
    write_entries(project, S0_1=ADD, S0_2=GREET, S0_4=ADD)
    write_entries(project, "others", S0_3=ADD)
    kept = project / "tests" / "mutations" / "us.results.json"
    kept.write_text('{"S0.9": {"result": "red"}}')
    mutate(project, "S0.1", "S0.2", "S0.4", "--record")
    results = json.loads(kept.read_text())
    assert {row: result["result"] for row, result in results.items()} == {
        "S0.1": "red",
        "S0.2": "green",
    }
    assert set(results["S0.1"]) == {"result", "date", "commit"}
    assert len(kept.read_text().splitlines()) == 4


def test_what_is_missing_or_stale_is_listed_without_running_anything(project: Path) -> None:
    write_entries(
        project,
        S0_1={**ADD, "replace": "a * b"},
        S0_2={**ADD, "replace": "a"},
        S0_3={**ADD, "file": "gone.py"},
        S0_4={**ADD, "test": "tests/test_tiny.py::test_add"},
        S0_5={**ADD, "by": "a + b"},
        S0_6=ADD,
        S1_1=ADD,
        S9_9=ADD,
    )
    done = mutate(project, "--check")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "without an entry: 2 S0.7 S0.8",
        "stale: 7",
        "  S0.1  tiny.py has the text 0 times: 'a * b'",
        f"  S0.2  tiny.py has the text {CODE.count('a')} times: 'a'",
        "  S0.3  no file gone.py",
        "  S0.4  the row does not name tests/test_tiny.py::test_add",
        "  S0.5  nothing is replaced",
        "  S1.1  the row says that it is not built",
        "  S9.9  no such row",
    ]


def test_a_row_stands_in_one_place_only(project: Path) -> None:
    write_entries(project, S0_1=ADD)
    write_entries(project, "others", S0_1=ADD)
    assert "S0.1 stands in two places" in mutate(project, "--check").stderr
    (project / "tests" / "mutations" / "others.yaml").write_text("S0.2: {none: a}\nS0.2: {none: b}")
    assert "S0.2 stands in two places" in mutate(project, "--check").stderr


def test_an_entry_that_is_not_whole_is_an_error(project: Path) -> None:
    write_entries(project, S0_1={"file": "tiny.py", "replace": "a + b"})
    done = mutate(project)
    assert done.returncode == 2
    assert "S0.1 needs file, replace and by" in done.stderr


def test_no_entry_of_ours_is_stale() -> None:
    root = SCRIPT.parents[1]
    done = subprocess.run(
        [sys.executable, SCRIPT, "--check"], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.stdout.partition("stale: ")[2] == "0\n", done.stdout + done.stderr
