"""Runs of a project that pass a filter, in an order, page by page.

What SQL can decide, it decides; configs and summaries are looked into only where the filter or the
order speaks of them, and whole rows are read for the page alone.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any

import orjson

from runyard.server.history.reading.dotted_names import MISSING
from runyard.server.listing.field_memory import FieldMemory, Values
from runyard.server.listing.field_paths import JSON, LIST, SELECTED, TIME, Field
from runyard.server.listing.filters import Condition, Narrowed, fields_of, narrow, predicate
from runyard.server.listing.orders import Order, Place, rank_of, take_page
from runyard.server.runs import runs
from runyard.server.store.json_text import parse
from runyard.server.store.sql import Row, fetch_number


@dataclass(frozen=True)
class Page:
    runs: list[tuple[Row, Place]]
    more: bool


def matching(
    db: Connection, memory: FieldMemory, project: int, condition: Condition
) -> list[int] | None:
    """Keys of the runs that pass; None where SQL alone can tell them."""
    narrowed = narrow(condition)
    if narrowed.exact:
        return None
    passes = predicate(condition)
    return [
        record.key
        for record in _records(db, memory, project, narrowed, fields_of(condition))
        if passes(record)
    ]


def count(db: Connection, project: int, condition: Condition, keys: list[int] | None) -> int:
    if keys is not None:
        return len(keys)
    narrowed = narrow(condition)
    return fetch_number(
        db,
        f"SELECT count(*) FROM runs WHERE runs.project = ? AND {narrowed.sql}",  # noqa: S608
        (project, *narrowed.values),
    )


def read_page(
    db: Connection,
    memory: FieldMemory,
    project: int,
    condition: Condition,
    keys: list[int] | None,
    order: Order,
    after: Place | None,
    first: int,
) -> Page:
    """At most `first` runs behind `after`; `keys` is what `matching` found."""
    narrowed = narrow(condition)
    if keys is None and order.field.kind not in (JSON, LIST):
        places = _places_by_sql(db, project, narrowed, order, after, first + 1)
    else:
        wanted = None if keys is None else set(keys)
        every = [
            Place(rank_of(record.get(order.field, exact=True)), record.key)
            for record in _records(db, memory, project, narrowed, {order.field})
            if wanted is None or record.key in wanted
        ]
        places = take_page(every, order.descending, after, first + 1)
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
    db: Connection, memory: FieldMemory, project: int, narrowed: Narrowed, fields: set[Field]
) -> list[_RunRecord]:
    where = f"runs.project = ? AND {narrowed.sql}"
    rows, values = memory.read(db, where, (project, *narrowed.values), fields)
    return [_RunRecord(row, values) for row in rows]


def _places_by_sql(
    db: Connection, project: int, narrowed: Narrowed, order: Order, after: Place | None, most: int
) -> list[Place]:
    value = SELECTED[order.field.column]
    sign, way = ("<", "DESC") if order.descending else (">", "ASC")
    tests, values = [f"runs.project = ? AND {narrowed.sql}"], [project, *narrowed.values]
    if after is not None and after.rank is None:
        tests.append(f"{value} IS NULL AND runs.key {sign} ?")
        values.append(after.key)
    elif after is not None and after.rank is not None:
        tests.append(f"(({value}, runs.key) {sign} (?, ?) OR {value} IS NULL)")
        values += [after.rank[1], after.key]
    rows = db.execute(
        f"SELECT runs.key AS key, {value} AS value FROM runs "  # noqa: S608
        f"WHERE {' AND '.join(tests)} ORDER BY {value} {way} NULLS LAST, runs.key {way} LIMIT ?",
        (*values, most),
    )
    return [Place(rank_of(row["value"]), row["key"]) for row in rows]


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
