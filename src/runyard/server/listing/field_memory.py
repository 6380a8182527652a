"""Values out of runs' configs and summaries that filters and orders ask for, remembered.

Reading the JSON of ten thousand runs takes a third of a second, and a client that pages through
them asks on every page. A run's revision, which a trigger keeps, tells whether what is remembered
still holds.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping
from sqlite3 import Connection
from typing import Any

from runyard.server.history.reading.dotted_names import MISSING
from runyard.server.listing.field_paths import JSON, SELECTED, Field, look_up
from runyard.server.store.database import must_be_short
from runyard.server.store.json_text import parse
from runyard.server.store.sql import Parameters, Row

_MOST_FIELDS = 24
# About 90 MB of them.
_MOST_VALUES = 500_000
_LONGEST_TEXT = 200
_AT_ONCE = 500
_NEVER = (-1, None)

Values = dict[int, Any]


class FieldMemory:
    """One for a database; threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # For each field, by run: the revision that a value was read at, and the value.
        self._known: OrderedDict[Field, dict[int, tuple[int, Any]]] = OrderedDict()

    def read(
        self, db: Connection, where: str, parameters: Parameters, fields: Collection[Field]
    ) -> tuple[list[Row], dict[Field, Values]]:
        """Runs with their key and those fields that are columns; the values of the others."""
        columns = sorted({field.column for field in fields if field.kind != JSON})
        chosen = "".join(f', {SELECTED[column]} AS "{column}"' for column in columns)
        rows = db.execute(
            f"SELECT runs.key AS key, coalesce(number, 0) AS revision{chosen} "
            f"FROM runs LEFT JOIN revisions ON revisions.run = runs.key WHERE {where}",
            parameters,
        ).fetchall()
        inside = [field for field in fields if field.kind == JSON]
        revisions = {row["key"]: row["revision"] for row in rows}
        return rows, self.values(db, revisions, inside) if inside else {}

    def values(
        self, db: Connection, revisions: Mapping[int, int], fields: Iterable[Field]
    ) -> dict[Field, Values]:
        """What stands under these fields in runs that are at these revisions."""
        wanted = list(fields)
        result: dict[Field, Values] = {field: {} for field in wanted}
        stale = set[int]()
        with self._lock:
            for field in wanted:
                memory = self._known.get(field, {})
                for key, revision in revisions.items():
                    read_at, value = memory.get(key, _NEVER)
                    if read_at == revision:
                        result[field][key] = value
                    else:
                        stale.add(key)
        # Without the lock: others find what is remembered while these texts are read.
        must_be_short(len(stale))
        fresh = _read(db, sorted(stale), wanted)
        with self._lock:
            for field in wanted:
                result[field] |= fresh[field]
                memory = self._known.setdefault(field, {})
                self._known.move_to_end(field)
                for key, value in fresh[field].items():
                    if _is_small(value):
                        memory[key] = (revisions[key], value)
            self._forget()
        return result

    def _forget(self) -> None:
        """Drop the fields that nobody has asked for lately; one alone may be as large as it is."""
        values = sum(map(len, self._known.values()))
        while len(self._known) > _MOST_FIELDS or (values > _MOST_VALUES and len(self._known) > 1):
            values -= len(self._known.popitem(last=False)[1])


def _read(db: Connection, keys: list[int], fields: list[Field]) -> dict[Field, Values]:
    values: dict[Field, Values] = {field: {} for field in fields}
    columns = sorted({field.column for field in fields})
    for start in range(0, len(keys), _AT_ONCE):
        rows = db.execute(
            f"SELECT key, {', '.join(columns)} FROM runs "
            "WHERE key IN (SELECT value FROM json_each(?))",
            (json.dumps(keys[start : start + _AT_ONCE]),),
        )
        for row in rows:
            content = {column: parse(row[column]) for column in columns}
            for field in fields:
                values[field][row["key"]] = look_up(content[field.column], field)
    return values


def _is_small(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= _LONGEST_TEXT
    return value is None or value is MISSING or isinstance(value, int | float)
