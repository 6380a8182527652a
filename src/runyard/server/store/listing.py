"""Runs of a project that pass a filter, in an order, page by page.

What SQL can decide, it decides; configs and summaries are looked into only where the filter or the
order speaks of them, and whole rows are read for the page alone.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from runyard.server.store import runs
from runyard.server.store.filter_sql import Narrowed, narrow
from runyard.server.store.filters import Condition, fields_of, predicate
from runyard.server.store.orders import Order, Place, rank_of, take_page
from runyard.server.store.run_fields import JSON, LIST, MISSING, SELECTED, TIME, Field, look_up
from runyard.server.store.runs import Row


@dataclass(frozen=True)
class Page:
    runs: list[tuple[Row, Place]]
    more: bool


def matching(
    connection: sqlite3.Connection, project: int, condition: Condition
) -> list[int] | None:
    """Keys of the runs that pass; None where SQL alone can tell them."""
    narrowed = narrow(condition)
    if narrowed.exact:
        return None
    passes = predicate(condition)
    return [
        record.key
        for record in _records(connection, project, narrowed, fields_of(condition))
        if passes(record)
    ]


def count(
    connection: sqlite3.Connection, project: int, condition: Condition, keys: list[int] | None
) -> int:
    if keys is not None:
        return len(keys)
    narrowed = narrow(condition)
    found: int = connection.execute(
        f"SELECT count(*) FROM runs WHERE runs.project = ? AND {narrowed.sql}",  # noqa: S608
        (project, *narrowed.values),
    ).fetchone()[0]
    return found


def read_page(
    connection: sqlite3.Connection,
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
        places = _places_by_sql(connection, project, narrowed, order, after, first + 1)
    else:
        wanted = None if keys is None else set(keys)
        every = [
            Place(rank_of(record.get(order.field, exact=True)), record.key)
            for record in _records(connection, project, narrowed, {order.field})
            if wanted is None or record.key in wanted
        ]
        places = take_page(every, order.descending, after, first + 1)
    found = runs.by_keys(connection, [place.key for place in places[:first]])
    by_key = {place.key: place for place in places}
    return Page([(row, by_key[row["key"]]) for row in found], len(places) > first)


class _RunRecord:
    """One run's columns as filters see them; JSON is read when it is asked for."""

    __slots__ = ("_parsed", "_row", "key")

    def __init__(self, row: Row) -> None:
        self._row = row
        self._parsed: dict[str, Any] = {}
        self.key: int = row["key"]

    def get(self, field: Field, *, exact: bool = False) -> Any:
        column = field.column
        if field.kind == JSON:
            return look_up(self._json(column), field)
        if field.kind == LIST:
            return self._json(column)
        value = self._row[column]
        if value is None:
            return MISSING
        return int(value) if field.kind == TIME and not exact else value

    def _json(self, column: str) -> Any:
        if column not in self._parsed:
            text = self._row[column]
            try:
                self._parsed[column] = orjson.loads(text)
            except ValueError:  # NaN and the infinities.
                self._parsed[column] = json.loads(text)
        return self._parsed[column]


def _records(
    connection: sqlite3.Connection, project: int, narrowed: Narrowed, fields: set[Field]
) -> Iterator[_RunRecord]:
    columns = sorted({field.column for field in fields})
    chosen = "".join(f', {SELECTED[column]} AS "{column}"' for column in columns)
    rows = connection.execute(
        f"SELECT runs.key AS key{chosen} FROM runs "  # noqa: S608
        f"WHERE runs.project = ? AND {narrowed.sql}",
        (project, *narrowed.values),
    )
    return map(_RunRecord, rows)


def _places_by_sql(
    connection: sqlite3.Connection,
    project: int,
    narrowed: Narrowed,
    order: Order,
    after: Place | None,
    most: int,
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
    rows = connection.execute(
        f"SELECT runs.key AS key, {value} AS value FROM runs "  # noqa: S608
        f"WHERE {' AND '.join(tests)} ORDER BY {value} {way} NULLS LAST, runs.key {way} LIMIT ?",
        (*given, most),
    )
    return [Place(rank_of(row["value"]), row["key"]) for row in rows]
