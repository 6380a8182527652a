"""Runs pytest; the few tests that fail beside others are tried once more, alone.

    scripts/suite.py -n 3 --dist loadfile

Thousands of tests with real clusters, browsers and kills share two cores: now and then one of them
is starved by its neighbours. Up to five tests that failed are therefore run again, one after the
other, in a process of their own. What fails twice fails the run. What passes alone is named at the
end, where its first failure is still to be read above: its cause is to be found, and it is mended
or becomes a line of docs/flakes.md, which has at most two. More than five failures are no chance:
they fail at once. A test that is skipped the second time has not passed.

Slow files that passed on the very same code are left out (tests/green_files.py says how that is
known); with RUNYARD_EVERY_TEST=1 all run.

Before that it prints which files took longest, summed over their tests, and how much processor time
of theirs that was (without servers and clusters, which nobody waits for). At the end it lists the
rows of docs/requirements.md whose tests did not prove them (tests/proofs.py says how): skipped, or
not run, or a long form without a green run lately. Where CI is set, they fail the run.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.green_files import (
    COMMITTED,
    EVERY_TEST,
    OF_THIS_MACHINE,
    Checkout,
    GreenFiles,
    better,
    find_green,
    green_of_run,
    is_switched,
    outcomes_of,
    read_green,
    write_green,
)
from tests.order import keep_seconds
from tests.proofs import find_unproved, read_commit_day, read_records
from tests.requirements import PAGE, read_rows

MOST_TRIED_AGAIN = 5
# Failures as they come; pytest itself prints them at the end.
FAILURES = Path(".cache/failures")
FLAKES = Path("docs/flakes.md")
MOST_FLAKES = 2
_SLOWEST = 60
# With these alone pytest runs all tests.
_WORDS_OF_WHOLE_RUNS = {"-n", "--dist", "-p", "--no-loadscope-reorder"}
# What pytest ends with where everything ran and tests have failed.
_TESTS_FAILED = 1


class Record:
    """A plugin of pytest: how each test ended and how long each file took, written to a file.

    With `only`, those tests alone are run.
    """

    def __init__(self, file: Path, only: list[str]) -> None:
        self._file = file
        self._only = set(only)
        self._ended: dict[str, str] = {}
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._cpu: defaultdict[str, float] = defaultdict(float)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self._only:
            items[:] = [item for item in items if item.nodeid in self._only]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file = report.nodeid.partition("::")[0]
        self._seconds[file] += report.duration
        self._cpu[file] += getattr(report, "cpu", 0.0)
        before = self._ended.get(report.nodeid)
        if report.outcome == "failed":
            FAILURES.parent.mkdir(exist_ok=True)
            with FAILURES.open("a") as failures:
                failures.write(f"== {report.nodeid} ({report.when})\n{report.longreprtext}\n")
        if report.outcome != "passed":
            self._ended[report.nodeid] = "failed" if before == "failed" else report.outcome
        elif report.when == "call" and before is None:
            self._ended[report.nodeid] = "passed"

    def pytest_sessionfinish(self) -> None:
        if not self._only:
            keep_seconds(Path.cwd(), self._seconds)
        files = sorted(
            self._seconds, key=lambda file: -max(self._seconds[file], 3 * self._cpu[file])
        )
        slowest = [(file, self._seconds[file], self._cpu[file]) for file in files[:_SLOWEST]]
        self._file.write_text(json.dumps({"ended": self._ended, "slowest": slowest}))


def main(words: list[str]) -> int:
    known = read_flakes()
    FAILURES.unlink(missing_ok=True)
    _compile_tests()
    checkout, green = read_checkout(words)
    if green:
        print(
            f"== {len(green)} slow test files passed on the very same code since "
            f"{min(record.day for record in green.values())}, and do not run again "
            "(RUNYARD_EVERY_TEST=1 runs them)",
            flush=True,
        )
    code, ended, slowest = run_pytest([*words, *(f"--ignore={file}" for file in green)], [])
    if checkout is not None and code in (0, _TESTS_FAILED):
        _keep_green(checkout, ended)
    print("== the slowest files: seconds of their tests, and of the processor")
    for file, seconds, cpu in slowest:
        print(f"{seconds:7.1f} {cpu:7.1f}  {file}")
    if len(known) > MOST_FLAKES:
        print(f"== {FLAKES} has {len(known)} lines, and {MOST_FLAKES} are allowed: mend one")
        code = code or _TESTS_FAILED
    failed = [name for name, how in ended.items() if how == "failed"]
    if code == _TESTS_FAILED and failed:
        if len(failed) > MOST_TRIED_AGAIN:
            print(
                f"== {len(failed)} tests failed: too many for chance, none is tried again",
                flush=True,
            )
            return code
        again = _try_again(words, failed, known)
        ended = {**ended, **again}
        is_twice = any(again.get(name) != "passed" for name in failed)
        code = _TESTS_FAILED if is_twice or len(known) > MOST_FLAKES else 0
    if code not in (0, _TESTS_FAILED) or not PAGE.exists():
        return code
    rows = read_rows()
    ended = {**ended, **outcomes_of(green, rows)}
    unproved = find_unproved(rows, ended, os.environ, read_records(), read_commit_day())
    for line in [f"== not proved by this run, of {PAGE}: {len(unproved)}", *unproved]:
        print(line)
    return _TESTS_FAILED if unproved and os.environ.get("CI") else code


def read_checkout(words: list[str]) -> tuple[Checkout | None, GreenFiles]:
    """The files that are tested, and the slow test files that need not run.

    Where only some tests are asked for, or others, nothing is left out and nothing recorded.
    """
    asks_for_all = all(
        word in _WORDS_OF_WHOLE_RUNS or before in _WORDS_OF_WHOLE_RUNS
        for before, word in zip(["", *words], words, strict=False)
    )
    if not asks_for_all or is_switched(os.environ):
        return None, {}
    try:
        checkout = Checkout(Path.cwd())
    except (OSError, subprocess.CalledProcessError):  # An unpacked release: everything runs.
        return None, {}
    if os.environ.get(EVERY_TEST):
        return checkout, {}
    known = [read_green(COMMITTED), read_green(OF_THIS_MACHINE)]
    return checkout, find_green(checkout, known, read_commit_day(), in_ci=_is_ci())


def _keep_green(before: Checkout, ended: dict[str, str]) -> None:
    """Not files that failed at first, nor those whose inputs changed during the run."""
    try:
        after = Checkout(Path.cwd())
    except (OSError, subprocess.CalledProcessError):
        return
    day, known = datetime.now(timezone.utc).date(), read_green(OF_THIS_MACHINE)
    for file, record in green_of_run(after, ended, day, in_ci=_is_ci()).items():
        if before.inputs.get(file) == record.inputs:
            known[file] = better(record, known.get(file))
    write_green(known, OF_THIS_MACHINE)


def _is_ci() -> bool:
    return bool(os.environ.get("CI"))


def _compile_tests() -> None:
    """In a fresh checkout each of pytest's processes would do it, all at the same time."""
    if not any(Path("tests").rglob("__pycache__/*-pytest-*.pyc")):
        collect = [sys.executable, "-m", "pytest", "--collect-only", "-q"]
        subprocess.run(collect, stdout=subprocess.DEVNULL, check=False)


def _try_again(words: list[str], failed: list[str], known: list[str]) -> dict[str, str]:
    """How they ended alone."""
    print("== once more, alone: " + ", ".join(failed), flush=True)
    files = sorted({name.partition("::")[0] for name in failed})
    _, again, _ = run_pytest([*words, "-n0", *files], failed)
    twice = [name for name in failed if again.get(name) != "passed"]
    flakes = [name for name in failed if name not in twice]
    for name in flakes:
        print(f"failed at first, passed alone: {name}")
    for name in twice:
        print(f"failed twice: {name}")
    for name in flakes:
        if name not in known:
            print(f"no line of {FLAKES} says why it failed at first: {name}")
    return again


def read_flakes(page: Path = FLAKES) -> list[str]:
    """The tests of which the page says why they may fail beside others."""
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    return re.findall(r"^\| `([^`]+::[^`]+)` \|", text, re.MULTILINE)


def run_pytest(
    words: list[str],
    only: list[str],
    switches: dict[str, str] | None = None,
    within: Callable[[list[str]], list[str]] = list,
) -> tuple[int, dict[str, str], list[tuple[str, float, float]]]:
    """Pytest's exit code, how each test ended, and the slowest files.

    `switches` are laid over the environment. `within` makes the command run somewhere else.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "record.json"
        once = [sys.executable, __file__, "--once", str(file), json.dumps(only), *words]
        environ = {**os.environ, **(switches or {})}
        code = subprocess.run(within(once), env=environ, check=False).returncode
        record = json.loads(file.read_text()) if file.exists() else {"ended": {}, "slowest": []}
        return code, record["ended"], record["slowest"]


def _once(file: str, only: str, words: list[str]) -> int:
    sys.path[:2] = [os.getcwd()]  # noqa: PTH109  (As `python -m pytest` has it.)
    return int(pytest.main(words, plugins=[Record(Path(file), json.loads(only))]))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--once"]:
        sys.exit(_once(sys.argv[2], sys.argv[3], sys.argv[4:]))
    sys.exit(main(sys.argv[1:]))
