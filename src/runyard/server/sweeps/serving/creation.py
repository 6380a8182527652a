"""A sweep's file, read and checked; a new sweep, and the runs that it knows of before it begins."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any

from runyard.reading.documents import DocumentError, read_document
from runyard.reading.problems import Problem
from runyard.search.budget import Budget
from runyard.search.by_number import index_of
from runyard.search.command import TYPED
from runyard.search.sweep import Asha, Sweep, read_sweep
from runyard.server.runs import runs
from runyard.server.store.sql import Row
from runyard.server.sweeps.ledger import sweeps
from runyard.server.sweeps.ledger.results import settings_of
from runyard.server.sweeps.ledger.sweep_changes import NewFile
from runyard.server.sweeps.ledger.sweeps import NewSweep
from runyard.server.sweeps.policy.rules import Aim, Limit, Rules


class BadSweep(ValueError):
    """The file cannot be a sweep; every problem is named."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(f"{problem.message}: {problem.mend}" for problem in problems))
        self.problems = problems


@dataclass(frozen=True)
class SweepFile:
    """A file that was found good."""

    text: str
    data: Any
    sweep: Sweep
    warnings: Sequence[Problem] = ()

    @property
    def config(self) -> str:
        return json.dumps(self.data, default=str)

    @property
    def rules(self) -> Rules:
        return rules_of(self.sweep)

    @property
    def size(self) -> int | None:
        return self.sweep.space.size if self.sweep.method == "grid" else None

    @property
    def budget(self) -> Budget | None:
        return self.sweep.options.budget

    def columns(self) -> dict[str, Any]:
        """What a new sweep, and one whose file changes, stores of it."""
        return {
            "text": self.text,
            "config": self.config,
            "rules": self.rules,
            "method": self.sweep.method,
            "run_cap": self.sweep.run_cap,
            "budget": None if self.budget is None else str(self.budget),
            "size": self.size,
            "description": self.sweep.description,
        }


def read_file(content: str | dict[str, Any]) -> SweepFile:
    """Read a sweep's file, as text (YAML or JSON) or as data. Takes its time on a large one."""
    text = content if isinstance(content, str) else json.dumps(content)
    try:
        data = read_document(text, typed=TYPED).data if isinstance(content, str) else content
    except DocumentError as error:
        place = f"line {error.line}: " if error.line else ""
        raise BadSweep([Problem((), f"{place}{error}", error.mend)]) from error
    sweep, problems = read_sweep(data)
    if sweep is None:
        raise BadSweep([problem for problem in problems if problem.is_error])
    return SweepFile(text, data, sweep, problems)


def rules_of(sweep: Sweep) -> Rules:
    return Rules(
        aims=tuple(
            Aim(metric.name, metric.goal == "maximize", metric.target, metric.impute)
            for metric in sweep.metrics
        ),
        limits=tuple(
            Limit(constraint.metric, constraint.bound, constraint.direction == "min")
            for constraint in sweep.constraints
        ),
        retries=dict(sweep.options.retries),
        seeds=max(1, len(sweep.options.seeds)),
        retry_failed=sweep.options.retry_failed,
        stop_after_failures=sweep.options.stop_after_failures,
        nan=sweep.options.nan,
        promotes=isinstance(sweep.early_terminate, Asha)
        and sweep.early_terminate.form == "promotion",
        draws=sweep.method != "custom" and sweep.controller != "local" and not sweep.scheduler,
    )


class BadPrior(ValueError):
    """A run that was to be known beforehand is not there."""


def new_sweep(
    db: Connection,
    file: SweepFile,
    *,
    entity: str,
    project: str,
    user: int,
    name: str | None,
    seed: int,
    folder: str | None = None,
    prior: Sequence[str],
    now: float,
) -> Row:
    """Store a sweep. `prior` are ids of runs of the same project that count as done; those that are
    no other sweep's are listed with its own from now on."""
    known = [_run(db, entity, project, run_id) for run_id in prior]
    tried = set[int]()
    if file.sweep.method == "grid":
        indexes = [index_of(file.sweep.space, settings_of(run)) for run in known]
        tried = {index for index in indexes if index is not None}
    options = file.sweep.options
    sweep = sweeps.create(
        db,
        NewSweep(
            entity=entity,
            project=project,
            user=user,
            name=name or file.sweep.name,
            **file.columns(),
            seed=seed if options.seed is None else options.seed,
            folder=folder,
            prior=tuple(run["key"] for run in known),
            tried=tuple(tried),
        ),
        now,
    )
    for run in known:
        if run["sweep"] is None:
            runs.update(db, run["key"], sweep=sweep["id"])
    return sweep


def new_file(file: SweepFile, before: SweepFile) -> NewFile:
    """What `sweep_changes.change_file` needs, to put one file in the place of another."""
    same_space = file.sweep.space == before.sweep.space
    return NewFile(**file.columns(), name=file.sweep.name, same_space=same_space)


def _run(db: Connection, entity: str, project: str, run_id: str) -> Row:
    row = runs.by_path(db, entity, project, run_id)
    if row is None:
        raise BadPrior(f"there is no run {entity}/{project}/{run_id} that could be a prior run")
    return row
