"""Runs of a project that pass a filter, in an order, page by page.

What SQL can decide, it decides; configs and summaries are looked into only where the filter or the
order speaks of them, and whole rows are read for the page alone.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any

import orjson

from runyard.server.history.reading.dotted_names import MISSING
from runyard.server.listing.field_memory import FieldMemory, Values
from runyard.server.listing.field_paths import JSON, LIST, TIME, Field
from runyard.server.listing.filters import Condition, Narrowed, fields_of, narrow, predicate
from runyard.server.listing.orders import Order, Place, rank_of
from runyard.server.runs import runs
from runyard.server.store.json_text import parse
from runyard.server.store.sql import Row, fetch_number


@dataclass(frozen=True)
class Page:
    runs: list[tuple[Row, Place]]
    more: bool


def count_all(db: Connection, project: int) -> int:
    return fetch_number(db, "SELECT count(*) FROM runs WHERE project = ?", (project,))


def places(
    db: Connection,
    memory: FieldMemory,
    project: int,
    condition: Condition,
    field: Field,
    keys: Collection[int] | None,
) -> list[Place]:
    """Where the runs that pass stand in the order of a field; of `keys` only, if they are given."""
    narrowed = narrow(condition)
    if narrowed.exact:
        records = _records(db, memory, project, narrowed, {field}, keys)
    else:
        passes = predicate(condition)
        every = _records(db, memory, project, narrowed, {field, *fields_of(condition)}, keys)
        records = [record for record in every if passes(record)]
    return [Place(rank_of(record.get(field, exact=True)), record.key) for record in records]


def rows_at(db: Connection, places: Sequence[Place], first: int) -> Page:
    """The first runs of these places; whether there are more."""
    rows = runs.by_keys(db, [place.key for place in places[:first]])
    by_key = {place.key: place for place in places}
    return Page([(row, by_key[row["key"]]) for row in rows], len(places) > first)


class _RunRecord:
    """One run as filters see it."""

    __slots__ = ("_row", "_values", "key")

    def __init__(self, row: Row, values: dict[Field, Values]) -> None:
        self._row = row
        self._values = values
        self.key: int = row["key"]

    def get(self, field: Field, *, exact: bool = False) -> Any:
        if field.kind == JSON:
            return self._values[field].get(self.key, MISSING)
        value = self._row[field.column]
        if value is None:
            return MISSING
        if field.kind == LIST:
            return parse(value)
        return int(value) if field.kind == TIME and not exact else value


def _records(
    db: Connection,
    memory: FieldMemory,
    project: int,
    narrowed: Narrowed,
    fields: set[Field],
    keys: Collection[int] | None,
) -> list[_RunRecord]:
    where, parameters = f"runs.project = ? AND {narrowed.sql}", [project, *narrowed.values]
    if keys is not None:
        where += " AND runs.key IN (SELECT value FROM json_each(?))"
        parameters.append(json.dumps(list(keys)))
    rows, values = memory.read(db, where, parameters, fields)
    return [_RunRecord(row, values) for row in rows]


def by_creation(
    db: Connection, project: int, order: Order, after: Place | None, most: int
) -> list[Place]:
    """All runs of a project, the oldest or the newest first: an index has them in this order."""
    sign, way = ("<", "DESC") if order.descending else (">", "ASC")
    test, values = "", list[Any]()
    if after is not None:
        test = f"AND (created_at, key) {sign} (?, ?)"
        values = [after.rank[1] if after.rank else None, after.key]
    rows = db.execute(
        f"SELECT key, created_at FROM runs WHERE project = ? {test} "
        f"ORDER BY created_at {way}, key {way} LIMIT ?",
        (project, *values, most),
    )
    return [Place(rank_of(row["created_at"]), row["key"]) for row in rows]


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
    "sweep_name": "(SELECT sweeps.name FROM sweeps "
    "WHERE sweeps.project = runs.project AND sweeps.id = runs.sweep)",
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
    before: tuple[float, int] | None = None,
    most: int | None = None,
) -> tuple[dict[str, list[Any]], list[list[Any]]]:
    """The columns every table has, and those of the fields; the newest run first.

    Only of these runs, where `keys` are given; else at most so many, of those that are older than
    `before` (when a run was created, and its key). A value is MISSING where a run has none.
    """
    chosen = ", ".join(f'{what} AS "{name}"' for name, what in COLUMNS.items())
    narrowed = "" if keys is None else "AND runs.key IN (SELECT value FROM json_each(:keys)) "
    if before is not None:
        narrowed += "AND (runs.created_at, runs.key) < (:time, :key) "
    time, key = before or (None, None)
    rows = db.execute(
        f"SELECT {chosen}, coalesce(number, 0) AS revision FROM runs "
        "LEFT JOIN revisions ON revisions.run = runs.key "
        f"WHERE runs.project = :project {narrowed}"
        "ORDER BY runs.created_at DESC, runs.key DESC LIMIT :most",
        {
            "project": project,
            "keys": None if keys is None else json.dumps(list(keys)),
            "time": time,
            "key": key,
            "most": -1 if most is None else most,
        },
    ).fetchall()
    *read, revisions = (
        [list(column) for column in zip(*rows, strict=True)]
        if rows
        else [[] for _ in range(len(COLUMNS) + 1)]
    )
    columns = dict(zip(COLUMNS, read, strict=True))
    # It is JSON already.
    columns["tags"] = [orjson.Fragment(text) for text in columns["tags"]]
    columns["stop_asked"] = [bool(is_asked) for is_asked in columns["stop_asked"]]
    values = (
        memory.values(db, dict(zip(columns["key"], revisions, strict=True)), fields)
        if fields
        else {}
    )
    keys = columns["key"]
    return columns, [[values[field].get(key, MISSING) for key in keys] for field in fields]
