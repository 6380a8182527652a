"""Which tables each subject of the server names in its SQL: import-linter cannot see that.

A table belongs to the subject whose schema module makes it. Another subject may name it only where
the tables below say so. A new entry is a new dependency between subjects: ask the owner's module
instead, where that is as quick.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import runyard.server
from runyard.server.store import schema

SERVER = Path(runyard.server.__file__).parent
SUBJECTS = (
    *("tracking", "sweeps", "jobs", "processes", "listing", "artifacts", "history", "runs"),
    *("people", "store", "api"),
)
# By the name of the schema module.
OWNERS = {
    "people_tables": "people",
    "run_tables": "runs",
    "process_tables": "processes",
    "history_tables": "history",
    "artifact_tables": "artifacts",
    "job_tables": "jobs",
    "sweep_tables": "sweeps",
}
# Tables of others. In a row of SQL a name is joined in place of a second question.
READS = {
    # The posts of many runs ask in one statement what `record` asks of each subject.
    "tracking": {
        *("batches", "clients", "projects", "runs", "segments", "sweeps", "trash", "trials"),
        "users",
    },
    "sweeps": {"attempts", "jobs", "projects", "runs"},
    "jobs": {"agents", "attempts", "projects", "sweeps", "trials", "users"},
    "processes": {"agents"},
    "listing": {"revisions", "runs", "sweeps", "users"},
    "artifacts": {"files", "members", "projects", "runs", "teams", "users"},
    "history": {"runs"},
    "runs": {"sweeps", "trials", "users"},
    "people": {"projects", "runs"},
    # Counts and lists of pages, over several subjects at once; it never writes.
    "api": {
        *("agents", "attempts", "clients", "files", "projects", "reports", "runs", "sweeps"),
        "trials",
    },
    # The triggers that tell what a commit has changed.
    "store": {"runs", "sweeps"},
}
WRITES = {
    # A new run, the mark of a deleted one and the trash are changes of several subjects.
    "tracking": {"deleted_runs", "runs", "trash"},
    # A claim makes trial, run and attempt in one statement each, for hundreds at once.
    "sweeps": {"attempts", "runs"},
}

_READ = re.compile(r'\b(?:FROM|JOIN)\s+"?(\w+)')
_WRITE = re.compile(r'\b(?:INTO|UPDATE|DELETE FROM)\s+"?(\w+)')


def _owners() -> dict[str, str]:
    found = {}
    for path in Path(schema.__file__).parent.glob("*_tables.py"):
        for table in re.findall(r"CREATE TABLE (\w+)", path.read_text()):
            found[table] = OWNERS[path.stem]
    return found


def _named(subject: str) -> Iterator[tuple[str, bool]]:
    """Words after SQL's keywords, and whether they are written to."""
    for path in (SERVER / subject).rglob("*.py"):
        if path.parent.name == "schema":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                writes = _WRITE.findall(node.value)
                yield from ((word, True) for word in writes)
                yield from ((word, False) for word in _READ.findall(node.value))
            elif isinstance(node, ast.Call) and len(node.args) > 1:
                name = ast.unparse(node.func).rpartition(".")[2]
                if name in ("insert", "update") and isinstance(node.args[1], ast.Constant):
                    yield str(node.args[1].value), True


def test_each_table_is_named_by_its_owner_or_by_those_listed() -> None:
    owners = _owners()
    assert len(owners) > 35
    reads: dict[str, set[str]] = {}
    writes: dict[str, set[str]] = {}
    for subject in SUBJECTS:
        for table, is_written in _named(subject):
            if owners.get(table, subject) != subject:
                (writes if is_written else reads).setdefault(subject, set()).add(table)
    for subject, tables in reads.items():
        tables -= writes.get(subject, set()) - READS.get(subject, set())
    assert writes == WRITES
    assert reads == READS
