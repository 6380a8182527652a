"""Runs that a person moves to another project of their entity."""

from __future__ import annotations

import json
from collections.abc import Sequence
from sqlite3 import Connection

from runyard.server.runs import runs, states
from runyard.server.store.sql import Row
from runyard.server.sweeps.ledger import trials


class Taken(ValueError):
    """The other project has a run of that id."""


class AtWork(ValueError):
    """A program still names the project that the run would leave."""


def of_project(db: Connection, project: int, keys: Sequence[int]) -> list[Row]:
    """Those of the runs that are the project's."""
    return [row for row in runs.by_keys(db, keys) if row["project"] == project]


def move(
    db: Connection, project: int, keys: Sequence[int], entity: str, target: str, now: float
) -> list[Row]:
    """All or none. Trials stay with their sweep, which finds them by their key.

    Only what has ended: a client sends its rows to the place where it began, and another attempt
    of a trial may name that place too.
    """
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
    _refuse_at_work(db, rows)
    for row in rows:
        runs.update(db, row["key"], project=place)
    return rows


def _refuse_at_work(db: Connection, rows: Sequence[Row]) -> None:
    going_on = trials.going_on(db, [row["key"] for row in rows])
    names = [row["name"] for row in rows if row["state"] in states.ALIVE or row["key"] in going_on]
    if names:
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        verb = "is" if len(names) == 1 else "are"
        raise AtWork(
            f"{', '.join(names[:3])}{more} {verb} at work, and what is logged yet would be lost: "
            "wait for the end, or stop it, and move then; nothing was moved"
        )
