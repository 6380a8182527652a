"""Reports: views that people keep, with their notes. What is in a view is the page's business."""

from __future__ import annotations

import json
from collections.abc import Mapping
from sqlite3 import Connection
from typing import Any

from runyard.server.store.names import new_id
from runyard.server.store.sql import Row, fetch_one, insert

_SELECT = (
    "SELECT reports.*, projects.entity AS entity, projects.name AS project_name, "
    "users.name AS user_name FROM reports JOIN projects ON projects.key = reports.project "
    "JOIN users ON users.key = reports.user "
)


class Outdated(ValueError):
    """Somebody else has saved the report since it was read."""


def create(db: Connection, project: int, user: int, content: Mapping[str, Any], now: float) -> Row:
    report_id = new_id()
    columns = {"id": report_id, "project": project, "user": user, "title": content["title"]}
    columns |= {"notes": content["notes"], "view": json.dumps(content["view"])}
    insert(db, "reports", {**columns, "created_at": now, "updated_at": now})
    row = by_id(db, report_id)
    assert row is not None
    return row


def by_id(db: Connection, report_id: str) -> Row | None:
    return fetch_one(db, _SELECT + "WHERE reports.id = ?", (report_id,))


def of_project(db: Connection, project: int) -> list[Row]:
    """The one that was changed last comes first."""
    return db.execute(
        _SELECT + "WHERE reports.project = ? ORDER BY reports.updated_at DESC", (project,)
    ).fetchall()


def change(
    db: Connection, key: int, revision: int | None, content: Mapping[str, Any], now: float
) -> None:
    """Set what is in `content`. A `revision` that is not the report's any more is refused."""
    columns = {
        name: json.dumps(value) if name == "view" else value for name, value in content.items()
    }
    settings = "".join(f", {name} = ?" for name in columns)
    # The names are ours, never a client's.
    cursor = db.execute(
        f"UPDATE reports SET updated_at = ?, revision = revision + 1{settings} "
        "WHERE key = ? AND (? IS NULL OR revision = ?)",
        [now, *columns.values(), key, revision, revision],
    )
    if not cursor.rowcount:
        raise Outdated("somebody has saved this report since you opened it: reload it first")


def delete(db: Connection, key: int) -> None:
    db.execute("DELETE FROM reports WHERE key = ?", (key,))
