"""A project's runs as columns, for tables of ten thousand rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from sqlite3 import Connection
from typing import Any

import orjson

from runyard.server.history.reading.dotted_names import MISSING
from runyard.server.listing.field_memory import FieldMemory, Values
from runyard.server.listing.field_paths import Field

# By what name a column goes, and what it is in the table.
COLUMNS = {
    "key": "runs.key",
    "id": "runs.id",
    "name": "runs.name",
    "state": "runs.state",
    "user": "(SELECT name FROM users WHERE users.key = runs.user)",
    "group": 'runs."group"',
    "job_type": "runs.job_type",
    "sweep": "runs.sweep",
    "tags": "runs.tags",
    "notes": "runs.notes",
    "host": "runs.host",
    "created_at": "runs.created_at",
    "started_at": "runs.started_at",
    "ended_at": "runs.ended_at",
    "heartbeat_at": "runs.heartbeat_at",
    "exit_code": "runs.exit_code",
    "stop_asked": "runs.stop_asked",
}


def read_columns(
    db: Connection,
    memory: FieldMemory,
    project: int,
    fields: Sequence[Field],
    keys: Sequence[int] | None,
) -> tuple[dict[str, list[Any]], list[list[Any]]]:
    """The columns every table has, and those of the fields; the newest run first.

    Only of these runs, where `keys` are given. A value is MISSING where a run has none.
    """
    chosen = ", ".join(f'{what} AS "{name}"' for name, what in COLUMNS.items())
    narrowed = "" if keys is None else "AND runs.key IN (SELECT value FROM json_each(:keys)) "
    rows = db.execute(
        f"SELECT {chosen}, coalesce(number, 0) AS revision FROM runs "  # noqa: S608
        "LEFT JOIN revisions ON revisions.run = runs.key "
        f"WHERE runs.project = :project {narrowed}"
        "ORDER BY runs.created_at DESC, runs.key DESC",
        {"project": project, "keys": None if keys is None else json.dumps(list(keys))},
    ).fetchall()
    *found, revisions = (
        [list(column) for column in zip(*rows, strict=True)]
        if rows
        else [[] for _ in range(len(COLUMNS) + 1)]
    )
    columns = dict(zip(COLUMNS, found, strict=True))
    # It is JSON already.
    columns["tags"] = [orjson.Fragment(text) for text in columns["tags"]]
    columns["stop_asked"] = [bool(asked) for asked in columns["stop_asked"]]
    values = (
        memory.values(db, dict(zip(columns["key"], revisions, strict=True)), fields)
        if fields
        else {}
    )
    return columns, [_column(values[field], columns["key"]) for field in fields]


def _column(values: Values, keys: Sequence[int]) -> list[Any]:
    return [values.get(key, MISSING) for key in keys]
