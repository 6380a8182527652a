"""Runs of a project that pass a filter, in an order, page by page.

What SQL can decide, it decides; configs and summaries are looked into only where the filter or the
order speaks of them, and whole rows are read for the page alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any

from runyard.server.history.reading.dotted_names import MISSING
from runyard.server.listing.field_memory import FieldMemory, Values
from runyard.server.listing.field_paths import JSON, LIST, SELECTED, TIME, Field
from runyard.server.listing.filter_sql import Narrowed, narrow
from runyard.server.listing.filters import Condition, fields_of, predicate
from runyard.server.listing.orders import Order, Place, rank_of, take_page
from runyard.server.runs import runs
from runyard.server.store.json_text import parse
from runyard.server.store.sql import Row


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
    found: int = db.execute(
        f"SELECT count(*) FROM runs WHERE runs.project = ? AND {narrowed.sql}",  # noqa: S608
        (project, *narrowed.values),
    ).fetchone()[0]
    return found


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
    found = runs.by_keys(db, [place.key for place in places[:first]])
    by_key = {place.key: place for place in places}
    return Page([(row, by_key[row["key"]]) for row in found], len(places) > first)


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
    columns = sorted({field.column for field in fields if field.kind != JSON})
    chosen = "".join(f', {SELECTED[column]} AS "{column}"' for column in columns)
    rows = db.execute(
        f"SELECT runs.key AS key, coalesce(number, 0) AS revision{chosen} "  # noqa: S608
        "FROM runs LEFT JOIN revisions ON revisions.run = runs.key "
        f"WHERE runs.project = ? AND {narrowed.sql}",
        (project, *narrowed.values),
    ).fetchall()
    inside = [field for field in fields if field.kind == JSON]
    values: dict[Field, Values] = {}
    if inside:
        revisions = {row["key"]: row["revision"] for row in rows}
        values = memory.values(db, revisions, inside)
    return [_RunRecord(row, values) for row in rows]


def _places_by_sql(
    db: Connection, project: int, narrowed: Narrowed, order: Order, after: Place | None, most: int
) -> list[Place]:
    value = SELECTED[order.field.column]
    sign, way = ("<", "DESC") if order.descending else (">", "ASC")
    tests, given = [f"runs.project = ? AND {narrowed.sql}"], [project, *narrowed.values]
    if after is not None and after.rank is None:
        tests.append(f"{value} IS NULL AND runs.key {sign} ?")
        given.append(after.key)
    elif after is not None and after.rank is not None:
        tests.append(f"(({value}, runs.key) {sign} (?, ?) OR {value} IS NULL)")
        given += [after.rank[1], after.key]
    rows = db.execute(
        f"SELECT runs.key AS key, {value} AS value FROM runs "  # noqa: S608
        f"WHERE {' AND '.join(tests)} ORDER BY {value} {way} NULLS LAST, runs.key {way} LIMIT ?",
        (*given, most),
    )
    return [Place(rank_of(row["value"]), row["key"]) for row in rows]
