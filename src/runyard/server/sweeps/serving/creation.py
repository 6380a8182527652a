"""A new sweep: its file, its place, and the runs that it knows of before it begins."""

from __future__ import annotations

import json
from collections.abc import Sequence
from sqlite3 import Connection
from typing import Any

from runyard.search.grid import index_of
from runyard.server.runs import runs
from runyard.server.store.sql import Row
from runyard.server.sweeps.ledger import sweeps
from runyard.server.sweeps.ledger.sweep_changes import NewFile
from runyard.server.sweeps.ledger.sweeps import NewSweep
from runyard.server.sweeps.serving.sweep_file import SweepFile


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
