"""Runs that a person moves to another project of their entity."""

from __future__ import annotations

import json
from collections.abc import Sequence
from sqlite3 import Connection

from runyard.server.runs import runs
from runyard.server.store.sql import Row


class Taken(ValueError):
    """The other project has a run of that id."""


def of_project(db: Connection, project: int, keys: Sequence[int]) -> list[Row]:
    """Those of the runs that are the project's."""
    return [row for row in runs.by_keys(db, keys) if row["project"] == project]


def move(
    db: Connection, project: int, keys: Sequence[int], entity: str, target: str, now: float
) -> list[Row]:
    """All or none. Trials stay with their sweep, which finds them by their key."""
    rows = of_project(db, project, keys)
    place = runs.ensure_project(db, entity, target, now)
    if place == project:
        return []
    taken = db.execute(
        "SELECT id FROM runs WHERE project = ? AND id IN (SELECT value FROM json_each(?))",
        (place, json.dumps([row["id"] for row in rows])),
    ).fetchall()
    if taken:
        ids = ", ".join(row["id"] for row in taken[:3])
        raise Taken(f"the project {target!r} has runs of the same id already: {ids}")
    for row in rows:
        runs.update(db, row["key"], project=place)
    return rows
