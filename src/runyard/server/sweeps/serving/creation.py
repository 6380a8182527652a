"""A new sweep: its file, its place, and the runs that it knows of before it begins."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any

from runyard.reading.documents import DocumentError, read_document
from runyard.reading.problems import Problem
from runyard.search.command import TYPED
from runyard.search.grid import index_of
from runyard.search.sweep import Asha, Sweep, read_sweep
from runyard.server.runs import runs
from runyard.server.store.sql import Row
from runyard.server.sweeps.ledger import sweeps
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
        draws=sweep.method != "custom" and sweep.controller != "local",
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
    folder: str | None,
    seed: int,
    prior: Sequence[str],
    now: float,
) -> Row:
    """Store a sweep. `prior` are ids of runs of the same project that count as done."""
    known = [_run(db, entity, project, run_id) for run_id in prior]
    tried = set[int]()
    if file.sweep.method == "grid":
        indexes = [index_of(file.sweep.space, settings_of(run)) for run in known]
        tried = {index for index in indexes if index is not None}
    options = file.sweep.options
    return sweeps.create(
        db,
        NewSweep(
            entity=entity,
            project=project,
            user=user,
            name=name or file.sweep.name,
            description=file.sweep.description,
            text=file.text,
            config=file.config,
            rules=file.rules,
            method=file.sweep.method,
            seed=seed if options.seed is None else options.seed,
            run_cap=file.sweep.run_cap,
            size=file.size,
            folder=folder,
            prior=tuple(run["key"] for run in known),
            tried=tuple(tried),
        ),
        now,
    )


def new_file(file: SweepFile, before: SweepFile) -> NewFile:
    """What `sweep_changes.change_file` needs, to put one file in the place of another."""
    return NewFile(
        text=file.text,
        config=file.config,
        rules=file.rules,
        method=file.sweep.method,
        run_cap=file.sweep.run_cap,
        size=file.size,
        name=file.sweep.name,
        description=file.sweep.description,
        same_space=file.sweep.space == before.sweep.space,
    )


def settings_of(run: Row) -> dict[str, Any]:
    """What a run's config says, without what the client says of itself."""
    config = json.loads(run["config"])
    return {
        key: item["value"] if isinstance(item, dict) and "value" in item else item
        for key, item in config.items()
        if key != "_wandb"
    }


def _run(db: Connection, entity: str, project: str, run_id: str) -> Row:
    row = runs.by_path(db, entity, project, run_id)
    if row is None:
        raise BadPrior(f"there is no run {entity}/{project}/{run_id} that could be a prior run")
    return row
