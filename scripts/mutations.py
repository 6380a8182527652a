"""Breaks the code behind each row of docs/requirements.md, one at a time: its test must go red.

    scripts/mutations.py                    # every row that has an entry in tests/mutations/*.yaml
    scripts/mutations.py S0.5 S0.6          # these
    scripts/mutations.py --seed S0          # those of one seed
    scripts/mutations.py --check            # only says which entries are missing or stale

An entry replaces one text of a file by another. It is applied in place, the row's tests are run,
and the file is put back, also when the script is interrupted. A file with uncommitted changes is
refused. What came of a row:

    red      a test failed, as it should
    green    the tests passed: they do not prove the row
    skipped  no test ran, so nothing is known
    broken   a test could not be loaded or started, or took too long: the mutation breaks too much

`--record` writes red and green to tests/mutations/OWNER.results.json, beside OWNER.yaml.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from types import FrameType

import yaml

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.requirements import NamedTest, Row, read_rows

ENTRIES = Path("tests/mutations")
# A mutation can make a test wait for what never comes.
MOST_SECONDS = 900.0
_NOT_LOADED = ("ImportError", "ModuleNotFoundError", "SyntaxError", "IndentationError")


@dataclass(frozen=True)
class Mutation:
    """What is to be broken for a row; or, in `none`, why that cannot be done."""

    row: str
    owner: str
    file: Path = Path()
    replace: str = ""
    by: str = ""
    test: str = ""
    none: str = ""


@dataclass(frozen=True)
class Outcome:
    result: str
    reason: str = ""


class Refused(Exception):
    """An entry or a file that cannot be worked with."""


def read_mutations(folder: Path = ENTRIES) -> dict[str, Mutation]:
    mutations: dict[str, Mutation] = {}
    for file in sorted(folder.glob("*.yaml")):
        text = file.read_text(encoding="utf-8")
        keys = re.findall(r"^(S\d+\.\d+)\s*:", text, re.MULTILINE)
        for row, fields in (yaml.safe_load(text) or {}).items():
            if row in mutations or keys.count(row) > 1:
                raise Refused(f"{file}: {row} stands in two places")
            mutations[row] = _read_mutation(file, row, fields)
    return mutations


def _read_mutation(file: Path, row: str, fields: dict[str, str]) -> Mutation:
    names = set(fields) if isinstance(fields, dict) else set()
    whole = {"file", "replace", "by"}
    if names != {"none"} and names - {"test"} != whole:
        raise Refused(f"{file}: {row} needs file, replace and by (and test, if need be), or none")
    if not all(isinstance(value, str) for value in fields.values()):
        raise Refused(f"{file}: {row}: every value is a text (in quotes)")
    words = {name: value for name, value in fields.items() if name != "file"}
    return Mutation(row, file.stem, Path(fields.get("file", "")), **words)


def find_fault(mutation: Mutation, row: Row | None) -> str:
    """Why an entry is stale, or nothing."""
    if row is None:
        return "no such row"
    if mutation.none:
        return ""
    if row.not_built:
        return "the row says that it is not built"
    if not mutation.file.is_file():
        return f"no file {mutation.file}"
    count = mutation.file.read_text(encoding="utf-8").count(mutation.replace)
    if not mutation.replace or count != 1:
        return f"{mutation.file} has the text {count} times: {mutation.replace!r}"
    if mutation.replace == mutation.by:
        return "nothing is replaced"
    if mutation.test and _plain(mutation.test) not in {test.name for test in row.tests}:
        return f"the row does not name {mutation.test}"
    return ""


def _plain(test: str) -> str:
    """Without the parameters in brackets."""
    return test.partition("[")[0]


@contextlib.contextmanager
def mutated(mutation: Mutation) -> Iterator[None]:
    """The file is broken inside, and afterwards what it was."""
    file = mutation.file
    done = subprocess.run(
        ["git", "status", "--porcelain", "--", str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode or done.stdout:
        raise Refused(f"{file} has uncommitted changes: {(done.stderr or done.stdout).strip()}")
    whole = file.read_bytes()
    times = (file.stat().st_atime_ns, file.stat().st_mtime_ns)
    try:
        file.write_text(
            file.read_text(encoding="utf-8").replace(mutation.replace, mutation.by),
            encoding="utf-8",
        )
        _forget_compiled(file)
        yield
    finally:
        file.write_bytes(whole)
        os.utime(file, ns=times)
        _forget_compiled(file)


def _forget_compiled(file: Path) -> None:
    """Python goes by second and size, which a mutation may leave as they were."""
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
        compiled.unlink(missing_ok=True)


def try_mutation(mutation: Mutation, row: Row) -> Outcome:
    with mutated(mutation):
        if mutation.file.suffix == ".py":
            try:
                compile(mutation.file.read_bytes(), mutation.file, "exec")
            except SyntaxError as error:
                return Outcome("broken", f"SyntaxError: {error}")
        outcomes = []
        # The short tests first: where they go red, the long forms need not run.
        for switches in sorted({test.switches for test in row.tests}):
            names = _names(mutation, [test for test in row.tests if test.switches == switches])
            if names:
                outcomes.append(run_tests(names, dict(switches)))
            if outcomes and outcomes[-1].result in ("red", "broken"):
                return outcomes[-1]
    return next((one for one in outcomes if one.result == "green"), outcomes[-1])


def _names(mutation: Mutation, tests: list[NamedTest]) -> list[str]:
    if not mutation.test:
        return [test.name for test in tests]
    return [mutation.test for test in tests if test.name == _plain(mutation.test)]


def run_tests(names: list[str], switches: dict[str, str]) -> Outcome:
    """With CI set, a test whose packages are missing would fail, and look red."""
    environ = {
        name: value
        for name, value in os.environ.items()
        if name != "CI" and not name.startswith("PYTEST_")
    }
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-x", "-q", f"--junitxml={report}", *names],
            env={**environ, **switches},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            output, _ = process.communicate(timeout=MOST_SECONDS)
        except subprocess.TimeoutExpired:
            return Outcome("broken", f"still running after {MOST_SECONDS:.0f} s")
        finally:
            _end(process)
        code = process.returncode
        cases = ElementTree.parse(report).getroot().iter("testcase") if report.exists() else []  # noqa: S314
        return judge(code, list(cases), output)


def _end(process: subprocess.Popen[str]) -> None:
    """An interrupted pytest still ends its servers and clusters."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def judge(code: int, cases: list[ElementTree.Element], output: str) -> Outcome:
    """What pytest's exit code and its report say."""
    lines = output.strip().splitlines()
    last = lines[-1] if lines else ""
    if code not in (0, 1):
        errors = [line.removeprefix("E").strip() for line in lines if line.startswith("E   ")]
        return Outcome("broken", errors[-1] if errors else last)
    for case in cases:
        name = case.get("name") or ""
        for kind in ("failure", "error"):
            fault = case.find(kind)
            if fault is not None:
                return _judge_fault(kind, name, (fault.get("message") or "").splitlines())
    if code == 1:
        return Outcome("broken", last)
    ran = [case for case in cases if case.find("skipped") is None]
    skipped = [case.find("skipped") for case in cases]
    reasons = sorted({skip.get("message") or "" for skip in skipped if skip is not None})
    return Outcome("green") if ran else Outcome("skipped", "; ".join(reasons) or last)


def _judge_fault(kind: str, name: str, message: list[str]) -> Outcome:
    """A check that fails in a fixture is a test's failure; a fixture that breaks is not."""
    first = message[0] if message else ""
    reason = f"{name}: {first}"
    is_check = kind == "failure" or re.search(r'with "(assert |AssertionError|Failed: )', first)
    is_loaded = not any(error in first for error in _NOT_LOADED)
    return Outcome("red" if is_check and is_loaded else "broken", reason)


def record(mutation: Mutation, outcome: Outcome, rows: set[str]) -> None:
    """One line a row; rows that the owner's file no longer has are dropped."""
    file = ENTRIES / f"{mutation.owner}.results.json"
    results = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    results[mutation.row] = {
        "result": outcome.result,
        "date": datetime.now(timezone.utc).date().isoformat(),
        "commit": _ask_git("rev-parse", "--short", "HEAD"),
    }
    kept = sorted((_place(row), row) for row in results if row in rows)
    lines = [f"{json.dumps(row)}: {json.dumps(results[row])}" for _, row in kept]
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _place(row: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", row)]


def _ask_git(*words: str) -> str:
    return subprocess.run(
        ["git", *words], capture_output=True, text=True, check=True
    ).stdout.strip()


def _stop(number: int, _: FrameType | None) -> None:
    sys.exit(128 + number)


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Break the code behind each row; its test fails.")
    parser.add_argument("rows", nargs="*", metavar="ROW")
    parser.add_argument("--seed", metavar="S0", help="the rows of one seed")
    parser.add_argument("--record", action="store_true", help="keep red and green")
    parser.add_argument("--check", action="store_true", help="run nothing: missing and stale")
    options = parser.parse_args(words)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, _stop)
    try:
        rows = {row.id: row for row in read_rows()}
        mutations = read_mutations()
        chosen = choose(list(rows), options.rows, options.seed)
        if options.check:
            return check(rows, mutations, chosen)
        return run(rows, mutations, chosen, keep=options.record)
    except (Refused, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def choose(rows: list[str], named: list[str], seed: str | None) -> list[str]:
    unknown = [row for row in named if row not in rows]
    if unknown:
        raise Refused(f"docs/requirements.md has no row {', '.join(unknown)}")
    if seed and not any(row.startswith(f"{seed}.") for row in rows):
        raise Refused(f"docs/requirements.md has no rows of {seed}")
    if not named and not seed:
        return rows
    return [row for row in rows if row in named or (seed and row.startswith(f"{seed}."))]


def find_gaps(
    rows: dict[str, Row], mutations: dict[str, Mutation], chosen: list[str]
) -> tuple[list[str], dict[str, str]]:
    """Rows without an entry; stale entries and why (those of no row at all among them)."""
    missing = [row for row in chosen if row not in mutations and not rows[row].not_built]
    looked_at = [*chosen, *(row for row in mutations if row not in rows)]
    faults = {
        row: find_fault(mutations[row], rows.get(row)) for row in looked_at if row in mutations
    }
    return missing, {row: fault for row, fault in faults.items() if fault}


def check(rows: dict[str, Row], mutations: dict[str, Mutation], chosen: list[str]) -> int:
    missing, stale = find_gaps(rows, mutations, chosen)
    print(f"without an entry: {len(missing)}" + "".join(f" {row}" for row in missing))
    print(f"stale: {len(stale)}")
    for row, fault in stale.items():
        print(f"  {row}  {fault}")
    return 1 if missing or stale else 0


def run(
    rows: dict[str, Row], mutations: dict[str, Mutation], chosen: list[str], *, keep: bool
) -> int:
    _, stale = find_gaps(rows, mutations, chosen)
    none = {row: rows[row].not_built for row in chosen if rows[row].not_built}
    outcomes: dict[str, Outcome] = {}
    for row in chosen:
        mutation = mutations.get(row)
        if mutation is None or row in stale or row in none:
            continue
        if mutation.none:
            none[row] = mutation.none
            continue
        began = time.monotonic()
        outcomes[row] = try_mutation(mutation, rows[row])
        took = time.monotonic() - began
        line = f"{row:6} {outcomes[row].result:8} {took:4.0f} s  {outcomes[row].reason}"
        print(line[: max(80, shutil.get_terminal_size((160, 24)).columns)], flush=True)
        if keep and outcomes[row].result in ("red", "green"):
            owned = {row for row, other in mutations.items() if other.owner == mutation.owner}
            record(mutation, outcomes[row], owned)
    print(f"== rows in the table: {len(rows)}, tried: {len(outcomes)}")
    for result in ("red", "green", "skipped", "broken"):
        names = [row for row, outcome in outcomes.items() if outcome.result == result]
        told = "" if result == "red" else "".join(f" {row}" for row in names)
        print(f"{result}: {len(names)}{told}")
    print(f"none: {len(none)}")
    for row, reason in none.items():
        print(f"  {row}  {reason}")
    check(rows, mutations, chosen)
    is_red = all(outcome.result == "red" for outcome in outcomes.values())
    return 0 if is_red and not stale else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
