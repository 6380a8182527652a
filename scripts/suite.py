"""Runs pytest; the few tests that fail beside others are tried once more, alone.

    scripts/suite.py -n 3 --dist loadfile

Thousands of tests with real clusters, browsers and kills share two cores: now and then one of them
is starved by its neighbours. Up to five tests that failed are therefore run again, one after the
other, in a process of their own. What fails twice fails the run; what passes alone is named at the
end, where its first failure is still to be read above. More than five failures are no chance: they
fail at once. A test that is skipped the second time has not passed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

MOST_TRIED_AGAIN = 5
# What pytest ends with where everything ran and tests have failed.
_TESTS_FAILED = 1


class Record:
    """A plugin of pytest: how each test ended, in a file; and, where asked, those tests alone."""

    def __init__(self, file: Path, only: list[str]) -> None:
        self._file = file
        self._only = set(only)
        self._ended: dict[str, str] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self._only:
            items[:] = [item for item in items if item.nodeid in self._only]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        before = self._ended.get(report.nodeid)
        if report.outcome != "passed":
            self._ended[report.nodeid] = "failed" if before == "failed" else report.outcome
        elif report.when == "call" and before is None:
            self._ended[report.nodeid] = "passed"

    def pytest_sessionfinish(self) -> None:
        self._file.write_text(json.dumps(self._ended))


def main(words: list[str]) -> int:
    code, ended = _run(words, [])
    if code != _TESTS_FAILED:
        return code
    failed = [name for name, how in ended.items() if how == "failed"]
    if not 0 < len(failed) <= MOST_TRIED_AGAIN:
        print(
            f"== {len(failed)} tests failed: too many for chance, none is tried again", flush=True
        )
        return code
    print("== once more, alone: " + ", ".join(failed), flush=True)
    files = sorted({name.partition("::")[0] for name in failed})
    _, again = _run([*words, "-n0", *files], failed)
    twice = [name for name in failed if again.get(name) != "passed"]
    for name in failed:
        if name not in twice:
            print(f"failed at first, passed alone: {name}")
    for name in twice:
        print(f"failed twice: {name}")
    return _TESTS_FAILED if twice else 0


def _run(words: list[str], only: list[str]) -> tuple[int, dict[str, str]]:
    """Pytest's exit code, and how each test ended."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ended.json"
        once = [sys.executable, __file__, "--once", str(file), json.dumps(only), *words]
        code = subprocess.run(once, check=False).returncode
        return code, json.loads(file.read_text()) if file.exists() else {}


def _once(file: str, only: str, words: list[str]) -> int:
    sys.path[0] = os.getcwd()  # noqa: PTH109  (As `python -m pytest` has it.)
    return int(pytest.main(words, plugins=[Record(Path(file), json.loads(only))]))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--once"]:
        sys.exit(_once(sys.argv[2], sys.argv[3], sys.argv[4:]))
    sys.exit(main(sys.argv[1:]))
