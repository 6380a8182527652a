"""The trash: runs that somebody deleted, kept for 30 days.

A run in the trash lies in a project of its entity that no list shows and no client can name, under
an id of its own. So every other query leaves it out by itself, and its old id is free again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from sqlite3 import Connection
from typing import Any

from runyard.server.people.permissions import Entities
from runyard.server.runs import runs, states
from runyard.server.runs.typed_names import of_entities
from runyard.server.store.sql import Row, fetch_column, insert
from runyard.server.sweeps.ledger import settling
from runyard.server.tracking import deletion

KEEP_SECONDS = 30 * 24 * 3600.0
_SELECT = (
    "SELECT trash.run AS key, trash.id AS id, trash.deleted_at AS deleted_at, runs.name AS name, "
    "runs.state AS state, runs.created_at AS created_at, projects.entity AS entity, "
    "projects.name AS project, trash.project AS project_key, "
    "(SELECT name FROM users WHERE users.key = trash.user) AS deleted_by "
    "FROM trash JOIN runs ON runs.key = trash.run JOIN projects ON projects.key = trash.project "
)


class Occupied(ValueError):
    """A run cannot be restored: another one has its id by now."""


def put(db: Connection, keys: Sequence[int], user: int, now: float) -> list[Row]:
    """Move runs to the trash; those that are there already, or gone, are left out."""
    rows = runs.by_keys(db, list(dict.fromkeys(keys)))
    for row in rows:
        deletion.mark(db, row, now)
        if row["sweep"] is not None:
            settling.forget(db, row, now)
            settling.release_run(db, row["key"])
        insert(
            db,
            "trash",
            {
                "run": row["key"],
                "project": row["project"],
                "id": row["id"],
                "user": user,
                "deleted_at": now,
            },
        )
        # Its client is told to stop, and will not say how it ended.
        ended = (
            {"state": "killed", "ended_at": now}
            if row["state"] in (*states.ALIVE, "pending")
            else {}
        )
        place = runs.ensure_project(db, row["entity"], runs.TRASH, now)
        runs.update(db, row["key"], project=place, id=f"{row['id']}/{row['key']}", **ended)
    return rows


def restore(db: Connection, keys: Sequence[int], entities: Entities | None) -> list[Row]:
    """Put runs back where they were."""
    rows = _rows(db, keys, entities)
    for row in rows:
        if runs.by_path(db, row["entity"], row["project"], row["id"]) is not None:
            raise Occupied(
                f"{row['project']} has another run {row['id']!r} by now: delete or move that first"
            )
        deletion.unmark(db, row["entity"], row["project"], row["id"])
        runs.update(db, row["key"], project=row["project_key"], id=row["id"])
        db.execute("DELETE FROM trash WHERE run = ?", (row["key"],))
    return rows


def of_entities_in(
    db: Connection, entities: Entities | None, project: int | None = None
) -> list[dict[str, Any]]:
    """What lies in the trash, the latest deletion first; each with when it goes for good."""
    tests, names = of_entities(entities)
    values: list[str | int] = [*names]
    if project is not None:
        tests.append("trash.project = ?")
        values.append(project)
    rows = db.execute(
        f"{_SELECT} WHERE {' AND '.join(tests or '1')} ORDER BY deleted_at DESC, key DESC", values
    )
    return [{**dict(row), "gone_at": row["deleted_at"] + KEEP_SECONDS} for row in rows]


def keys_of(db: Connection, keys: Iterable[int], entities: Entities | None) -> list[int]:
    return [row["key"] for row in _rows(db, list(keys), entities)]


def expired(db: Connection, now: float) -> list[int]:
    """Runs whose 30 days are over."""
    question = "SELECT run FROM trash WHERE deleted_at < ?"
    return fetch_column(db, question, (now - KEEP_SECONDS,))


def _rows(db: Connection, keys: Sequence[int], entities: Entities | None) -> list[Row]:
    tests, values = of_entities(entities)
    tests.append("trash.run IN (SELECT value FROM json_each(?))")
    question = f"{_SELECT} WHERE {' AND '.join(tests)}"
    return db.execute(question, [*values, json.dumps(list(keys))]).fetchall()
