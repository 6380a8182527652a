"""The house itself: its rooms, what they may bring in, and whether the papers are true."""

from __future__ import annotations

import ast
import functools
import importlib
import os
import re
import subprocess
import sys
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

from tests.requirements import PAGE, NamedTest, read_rows, read_tests

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
ROOMS = sorted(
    folder.name for folder in (SOURCE / "runyard").iterdir() if (folder / "__init__.py").exists()
)
# Of `schedulers` what a job knows of itself.
LIGHT = ("client", "node", "schedulers", "train")


@pytest.mark.parametrize("room", ROOMS)
def test_each_room_says_what_it_owns(room: str) -> None:
    module = importlib.import_module(f"runyard.{room}")
    assert module.__doc__ is not None
    assert re.search(r"\b[Oo]wns\b", module.__doc__)
    assert f"`{room}/`" in (ROOT / "docs" / "design.md").read_text()


@pytest.mark.parametrize("room", [room for room in ROOMS if room != "train"])
def test_an_init_holds_no_code(room: str) -> None:
    tree = ast.parse((SOURCE / "runyard" / room / "__init__.py").read_text())
    assert len(tree.body) == 1, "a docstring and nothing else"


MODULES = [path for path in (SOURCE / "runyard").rglob("*.py") if path.stem != "__init__"]
# A module of fewer lines is folded into a neighbour, or stands here with its reason.
FEWEST_LINES = 30
SMALL = {
    "__main__": "Python's entry",
    "version": "read as text by the build and by the scripts",
    "grace": "must agree in node/ and launch/",
    "rank_forms": "must agree in config/, node/ and launch/",
    "vocabulary": "must agree in server/, client/ and actions/",
    "actions/ending/steering": "the command line and Python steer alike",
    "actions/submitting/last_request": "three commands begin with what the last job asked for",
    "client/trash": "a part of the client a subject",
    "cli/connect": "loads the client: commands without a server do not",
    "cli/questions": "several commands ask; no one of them owns it",
    "cli/tables": "loads rich: what prints no table does not",
    "clusters/environment_kinds": "every command loads it, without the rest of the profiles",
    "clusters/findings": "what all parts of the doctor answer with, and import",
    "schedulers/errors": "what every scheduler raises, and callers catch",
    "schedulers/gridengine/settings": "the counterpart of Slurm's module of the name",
    "schedulers/local/inside": "runs in jobs: the standard library only",
    "search/engines/choose": "imports all engines, which do not know each other",
    "search/engines/sobol": "two engines draw from it",
    "search/stopping/choose": "imports both stoppers, which do not know each other",
    "server/sweeps/policy/ahead": "a rule of its own, pure",
    "server/sweeps/serving/quiet_period": "two parts of serving wait by it",
    "train/errors": "what programs catch, without loading the rest",
    "train/rehearsing": "what programs import, without loading the rest",
    "train/saying": "what programs import, without loading the rest",
}


def test_no_folder_has_more_than_25_modules() -> None:
    """Its `__init__` counts as well."""
    folders = Counter(path.parent for path in (SOURCE / "runyard").rglob("*.py"))
    assert [(folder, count) for folder, count in folders.items() if count > 25] == []


def test_the_command_line_only_reads_and_prints() -> None:
    """What grows beyond it belongs into an action, which Python and the page can call."""
    lines = [len(path.read_text().splitlines()) for path in MODULES if "cli" in path.parts]
    assert sum(lines) <= 6000


def test_only_the_command_line_reads_arguments() -> None:
    """And `python -m runyard.server`, which has two options."""
    readers = {
        path.relative_to(SOURCE / "runyard").parts[0]
        for path in MODULES
        if re.search(r"^\s*(import|from) argparse\b", path.read_text(), re.MULTILINE)
        and path != SOURCE / "runyard" / "server" / "__main__.py"
    }
    assert readers == {"cli"}


def test_a_small_module_has_a_reason() -> None:
    small = {
        str(path.relative_to(SOURCE / "runyard").with_suffix(""))
        for path in MODULES
        if len(path.read_text().splitlines()) < FEWEST_LINES
    }
    assert sorted(small - set(SMALL)) == []
    assert sorted(set(SMALL) - small) == [], "they have grown, or are gone"


def test_a_module_of_the_server_is_found_by_its_name() -> None:
    names = Counter(path.name for path in MODULES if SOURCE / "runyard/server" in path.parents)
    assert [name for name, count in names.items() if count > 1] == []


def test_no_two_modules_import_each_other() -> None:
    """Not by way of others either, not across rooms, and not for types alone."""
    imports = grimp.build_graph("runyard", cache_dir=None)
    order = TopologicalSorter(
        {module: imports.find_modules_directly_imported_by(module) for module in imports.modules}
    )
    order.prepare()  # Raises CycleError, which names the circle.


def test_an_exception_to_the_linter_says_why() -> None:
    """Behind it, or in pyproject.toml for whole files."""
    for path in MODULES:
        for line in path.read_text().splitlines():
            assert re.search(r"noqa: [A-Z0-9, ]+(- \w|\(\w)", line) or "noqa" not in line, line


def test_no_statement_numbers_its_parameters() -> None:
    """Python 3.14 takes `?1` from a mapping alone, and earlier ones only warn."""
    for file in (SOURCE / "runyard").rglob("*.py"):
        assert not re.search(r"[ (=,]\?[0-9]", file.read_text()), f"{file}: write :name"


def test_what_programs_import_is_one_list_of_names() -> None:
    """`train` is what strangers import: its `__init__` finds each name that it promises."""
    from runyard import train

    assert set(dir(train)) == set(train.__all__)
    for name in train.__all__:
        assert getattr(train, name) is not None
    assert set(train._WHERE) == set(train.__all__)


@pytest.mark.parametrize("room", LIGHT)
def test_what_starts_on_every_node_is_the_standard_library_alone(room: str) -> None:
    """Imported by a Python that has no site-packages at all."""
    of_jobs = ("inside.py", "job_ends.py")
    modules = [
        ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        for path in (SOURCE / "runyard" / room).rglob("*.py")
        if room != "schedulers" or path.name in of_jobs
    ]
    assert modules
    code = f"import sys; sys.path.insert(0, {str(SOURCE)!r})\n" + "\n".join(
        f"import {module.removesuffix('.__init__')}" for module in modules
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_row_of_the_requirements_names_tests_that_exist() -> None:
    """Or says why it is not built."""
    for row in read_rows(ROOT / PAGE):
        assert row.tests or row.not_built, row.id
        assert_tests_exist(row.id, row.tests)


def test_no_statement_of_the_reference_is_missing() -> None:
    """What was drawn from the seeds: so many statements each. New ones come behind them."""
    drawn = {"S0": 61, "S1": 97, "S2": 37, "S3": 61, "S4": 49}
    ids = {row.id for row in read_rows(ROOT / PAGE)}
    expected = {f"{seed}.{number + 1}" for seed, count in drawn.items() for number in range(count)}
    assert len(expected) == 305
    assert sorted(expected - ids) == []


@pytest.mark.parametrize(
    "line",
    [
        "| S0.1 | two cells |",
        "| S0.1 | a test without a file | test_a |",
        "| S0.1 | tests without a comma | tests/a.py::test_a tests/a.py::test_b |",
        "| S0.1 | a switch without a value | tests/a.py::test_a (RUNYARD_LONG_JOBS) |",
        "| S0.1 | twice | tests/a.py::test_a |\n| S0.1 | twice | tests/a.py::test_a |",
    ],
)
def test_a_row_that_cannot_be_read_is_an_error(line: str, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(f"| id | what must be true | test |\n{line}\n")
    with pytest.raises(ValueError, match=r"page\.md|S0\.1"):
        read_rows(tmp_path / "page.md")


def test_a_long_form_names_its_switches() -> None:
    short, long = read_tests("tests/a.py::test_a, tests/b.py::test_b (RUNYARD_A=1 RUNYARD_B=20)")
    assert short == NamedTest("tests/a.py::test_a")
    assert long.name == "tests/b.py::test_b"
    assert dict(long.switches) == {"RUNYARD_A": "1", "RUNYARD_B": "20"}
    assert str(long) == "tests/b.py::test_b (RUNYARD_A=1 RUNYARD_B=20)"


def test_every_line_of_the_threat_model_names_tests_that_exist() -> None:
    page = (ROOT / "docs" / "security.md").read_text()
    rows = re.findall(r"^\| (.*) \| (.*) \| (.*) \|$", page, re.MULTILINE)
    lines = [row for row in rows if row[0] not in ("attack", "---")]
    actors = page.count("| attack | protection | tests |\n| --- | --- | --- |\n")
    assert len(rows) - len(lines) == 2 * actors
    assert page.count("\n|") == len(rows)
    assert actors >= 6
    for attack, _, proof in lines:
        assert_tests_exist(attack, read_tests(proof))


def assert_tests_exist(statement: str, tests: tuple[NamedTest, ...]) -> None:
    for test in tests:
        file, _, name = test.name.partition("::")
        assert name in functions_of(ROOT / file), f"{statement}: {file} has no {name}"


@functools.cache
def functions_of(file: Path) -> set[str]:
    """Of the module itself: pytest finds what is inside of a class under another name."""
    body = ast.parse(file.read_text()).body
    return {node.name for node in body if isinstance(node, ast.FunctionDef)}


def test_the_two_commands_of_the_readme_are_there() -> None:
    readme = (ROOT / "README.md").read_text()
    for command in ("quickstart", "test"):
        assert f"./{command} " in readme
        assert os.access(ROOT / command, os.X_OK)


def test_links_between_the_documents_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.name != "requirements.md"),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_names_to_be_run_is_there(page: Path) -> None:
    text = page.read_text()
    named = {
        *(f"{name.replace('.', '/')}.py" for name in re.findall(r"-m (benchmarks[.\w]+\w)", text)),
        *re.findall(r"\b(?:benchmarks|scripts|tests)/[\w/]+\.(?:py|sh|c)\b", text),
        *re.findall(r"\bexamples/[\w-]+\b", text),
    }
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_each_long_form_of_a_test_is_told_of() -> None:
    """A switch that nobody knows runs nothing."""
    told = (ROOT / "CONTRIBUTING.md").read_text()
    for file in (ROOT / "tests").rglob("test_*.py"):
        for name in re.findall(r"RUNYARD_(?:ALL|LONG|WRITE)_[A-Z]+", file.read_text()):
            assert f"`{name}=1" in told, f"{file.name}: {name}"


def test_the_design_names_each_file_so_that_it_can_be_found() -> None:
    """From `src/runyard` on, or by as much of its path as no other file has."""
    text = (ROOT / "docs" / "design.md").read_text()
    here = [
        path.relative_to(ROOT).as_posix()
        for folder in ("src", "tests", "scripts", "benchmarks", "dashboard/app/src")
        for path in (ROOT / folder).rglob("*.[pt]*")
    ] + ["hatch_build.py"]
    for named in set(re.findall(r"`([\w/]+\.(?:py|tsx?))`", text)):
        files = [one for one in here if f"/{one}".endswith(f"/{named}")]
        is_whole = f"src/runyard/{named}" in files
        assert is_whole or len(files) == 1 or named == "inside.py", (named, files)


# What only a clock or a counter can have told.
MEASURED = re.compile(
    r"\d (ms|µs)\b|\d s of CPU|% of a core|times as (fast|long|slow)|\bregret\b|\| in truth \|"
)
GIVES_IT = re.compile(r"python -m benchmarks|benchmarks\.\w+`|\bpytest\b|scripts/\w+\.py")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_measured_figure_stands_beside_the_command_that_gives_it(page: Path) -> None:
    """In the same part of the page; what a command printed, in a block of code, is an example."""
    if page.name == "commands.md":
        return
    for part in re.split(r"^#+ ", page.read_text(), flags=re.MULTILINE):
        told = re.sub(r"^```.*?^```$", "", part, flags=re.MULTILINE | re.DOTALL)
        figure = MEASURED.search(told)
        assert figure is None or GIVES_IT.search(part), f"{part.splitlines()[0]}: {figure[0]!r}"


def test_files_can_be_held_in_the_head() -> None:
    """Past 500 lines a file says in its first lines why it is "in one file"."""
    kinds = (".py", ".ts", ".tsx", ".css", ".mjs", ".c", ".sh")
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("no git here, or no repository: an unpacked release")
    for name in listed.stdout.splitlines():
        if name.endswith(kinds) and (ROOT / name).exists():
            lines = (ROOT / name).read_text().splitlines()
            assert len(lines) <= 500 or "in one file" in " ".join(lines[:15]), name


def test_the_changelog_tells_of_this_version_or_the_next() -> None:
    from runyard.version import __version__

    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert "## [Unreleased]" in changelog or f"## [{__version__}]" in changelog
