"""Slow test files that passed on the very same code need not run again.

Real clusters, browsers and clients take four fifths of the suite's time. `scripts/suite.py` writes
down with which inputs each of their files passed; while these inputs stay the same, the file is
left out. The inputs are the contents of all files of the checkout, except those that such a test
does not read: other test files, and pages that it does not name. So a change in `src/` or in a
helper of tests runs all files again, a change in one slow test file runs that one, and a change of
a page runs few. The releases of Python and wandb count, too; other packages do not.

A machine's own runs stand in `.cache/green_files.json`. Those in `tests/green_files.json` are
committed (scripts/keep_green_files.py), so a fresh clone knows them, too. They hold for two weeks
of commits, as long forms do: packages and systems change as well. Some files (`ALWAYS`) run each
time, so that a machine on which clusters or browsers do not start is noticed.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import date
from importlib import metadata
from pathlib import Path

from tests.requirements import Row

COMMITTED = Path("tests/green_files.json")
OF_THIS_MACHINE = Path(".cache/green_files.json")
MOST_DAYS = 14
SLOW_FOLDERS = (
    "cuts", "gridengine", "hydra", "live", "nodes", "page", "slurm", "train", "tutorials",
    "wandb_clients",
)  # fmt: skip
ALWAYS = (
    "tests/cuts/test_cut_by_usr2.py",
    "tests/gridengine/test_conformance.py",
    "tests/hydra/test_examples.py",
    "tests/live/test_resume.py",
    "tests/live/test_tracked_run.py",
    "tests/nodes/test_one_server.py",
    "tests/page/test_project_page.py",
    "tests/slurm/test_cluster.py",
    "tests/slurm/test_ranks.py",
    "tests/train/test_checkpoints.py",
    "tests/wandb_clients/test_taken_port.py",
)
EVERY_TEST = "RUNYARD_EVERY_TEST"
# They make tests longer or shorter, or others run.
_SWITCHES = (
    "RUNYARD_ALL_", "RUNYARD_COVERAGE", "RUNYARD_CUT", "RUNYARD_FUZZ", "RUNYARD_HYDRA_REPOSITORY",
    "RUNYARD_KILLS", "RUNYARD_LONG_", "RUNYARD_MANY_", "RUNYARD_WANDB_CHECKOUT", "PYTEST_ADDOPTS",
)  # fmt: skip
# Folders that slow tests do not read, unless they name them.
_NAMED = ("benchmarks", "docs")
_NEVER_READ = re.compile(
    r"CHANGELOG\.md|CONTRIBUTING\.md|mkdocs\.yml|\.ci/.*|\.pre-commit-config\.yaml|tests/mutations/.*|tests/fuzz/corpus/.*"
    r"|tests/(long_forms|green_files)\.json|tests/(.*/)?test_\w+\.py"
)


@dataclass(frozen=True)
class GreenFile:
    """`skipped`: tests of which no form passed."""

    inputs: str
    day: str
    in_ci: bool
    """There no test may be skipped for want of a program."""
    skipped: tuple[str, ...] = ()


GreenFiles = dict[str, GreenFile]


class Checkout:
    """Its slow test files, and of each what it depends on, as they are now.

    `inputs`: by file, a digest that changes where something changes that the tests may depend on.
    """

    def __init__(self, root: Path) -> None:
        """Raises OSError or CalledProcessError where git does not list its files."""
        words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.check_output(words, cwd=root, stderr=subprocess.DEVNULL)
        self._root = root
        files = sorted(set(listed.decode().split("\0")) - {""})
        self._files = [file for file in files if (root / file).is_file()]
        self._known = frozenset(self._files)
        self._imports_of: dict[str, frozenset[str]] = {}
        python = f"{sys.platform} {sys.version_info[0]}.{sys.version_info[1]} {_wandb()}"
        of_all = [
            file
            for file in self._files
            if not _NEVER_READ.fullmatch(file) and file.partition("/")[0] not in _NAMED
        ]
        self._of_all = self._digest(of_all, python)
        self._of_folders = {
            name: self._digest([file for file in self._files if file.startswith(f"{name}/")])
            for name in _NAMED
        }
        self.inputs = {file: self._read_inputs(file) for file in self._slow_files()}

    def _slow_files(self) -> list[str]:
        folders = tuple(f"tests/{name}/" for name in SLOW_FOLDERS)
        return [
            file
            for file in self._files
            if file.startswith(folders) and Path(file).name.startswith("test_")
        ]

    def _read_inputs(self, file: str) -> str:
        fixtures = {f"{folder}/conftest.py" for folder in Path(file).parents} & self._known
        files = sorted({*self._with_imports(file), *fixtures})
        texts = [(self._root / each).read_text(errors="replace") for each in files]
        named = [
            digest
            for name, digest in self._of_folders.items()
            if any(name in each for each in texts)
        ]
        return self._digest(files, self._of_all, *named)

    def _with_imports(self, file: str) -> list[str]:
        """The test file, and the modules of tests that it imports something of."""
        known, new = {file}, [file]
        while new:
            imported = self._imports(new.pop())
            new += imported - known
            known |= imported
        return sorted(known)

    def _imports(self, file: str) -> frozenset[str]:
        if file not in self._imports_of:
            try:
                nodes = [*ast.walk(ast.parse((self._root / file).read_bytes()))]
            except (SyntaxError, ValueError):  # It fails when it runs.
                nodes = []
            modules = {
                name
                for node in nodes
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests")
                for name in (node.module, *(f"{node.module}.{each.name}" for each in node.names))
            }
            files = {f"{str(name).replace('.', '/')}.py" for name in modules}
            self._imports_of[file] = frozenset(files & self._known)
        return self._imports_of[file]

    def _digest(self, files: Iterable[str], *words: str) -> str:
        digest = hashlib.sha256("\0".join(words).encode())
        for file in files:
            path = self._root / file
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(f"\0{file}\0{content}\0{os.access(path, os.X_OK)}".encode())
        return digest.hexdigest()[:24]


def find_green(
    checkout: Checkout, known: Iterable[GreenFiles], committed: date | None, *, in_ci: bool
) -> GreenFiles:
    """The slow files that need not run now. `committed`: the day of the commit that is tested."""
    green: GreenFiles = {}
    for file, inputs in checkout.inputs.items():
        if file in ALWAYS:
            continue
        for files in known:
            record = files.get(file)
            if (
                record is not None
                and record.inputs == inputs
                and (record.in_ci or not in_ci)
                and _is_recent(record, committed)
            ):
                green[file] = better(record, green.get(file))
    return green


def better(record: GreenFile, other: GreenFile | None) -> GreenFile:
    """Of two records, the one that says more."""
    if other is None or other.inputs != record.inputs:
        return record
    return max(record, other, key=lambda each: (each.in_ci, each.day))


def _is_recent(record: GreenFile, committed: date | None) -> bool:
    return committed is None or (committed - date.fromisoformat(record.day)).days <= MOST_DAYS


def green_of_run(
    checkout: Checkout, ended: Mapping[str, str], day: date, *, in_ci: bool
) -> GreenFiles:
    """The slow files that passed in a run that came to its end; `ended` as of scripts/suite.py."""
    outcomes: dict[str, dict[str, set[str]]] = {}
    for test, how in ended.items():
        file, _, name = test.partition("::")
        outcomes.setdefault(file, {}).setdefault(name.partition("[")[0], set()).add(how)
    green: GreenFiles = {}
    for file, inputs in checkout.inputs.items():
        tests = outcomes.get(file, {})
        hows = set[str]().union(*tests.values())
        if "passed" in hows and "failed" not in hows:
            skipped = tuple(sorted(name for name, how in tests.items() if "passed" not in how))
            green[file] = GreenFile(inputs, day.isoformat(), in_ci, skipped)
    return green


def outcomes_of(green: GreenFiles, rows: Iterable[Row]) -> dict[str, str]:
    """How the tests ended that rows name and that are in files which did not run now."""
    ended = {}
    for row in rows:
        for test in row.tests:
            file, _, name = test.name.partition("::")
            if file in green:
                ended[test.name] = "skipped" if name in green[file].skipped else "passed"
    return ended


def is_switched(names: Collection[str]) -> bool:
    """Whether variables of these names ask for other tests than those that `./test` runs."""
    return any(name.startswith(_SWITCHES) for name in names)


def _wandb() -> str:
    try:
        return metadata.version("wandb")
    except metadata.PackageNotFoundError:
        return "no wandb"


def read_green(file: Path) -> GreenFiles:
    """Empty where there is no such file, or one that cannot be read."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        return {
            name: GreenFile(**{**record, "skipped": tuple(record["skipped"])})
            for name, record in content.items()
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def write_green(green: GreenFiles, file: Path) -> None:
    """One line a test file, so that a change of one is a change of one line."""
    lines = [f"{json.dumps(name)}: {json.dumps(asdict(green[name]))}" for name in sorted(green)]
    file.parent.mkdir(exist_ok=True)
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
