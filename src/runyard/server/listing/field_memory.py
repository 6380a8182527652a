"""Values out of runs' configs and summaries that filters and orders ask for, remembered.

Reading the JSON of ten thousand runs takes a third of a second, and a client that pages through
them asks on every page. A run's revision, which a trigger keeps, tells whether what is remembered
still holds.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from sqlite3 import Connection
from typing import Any

from runyard.server.history.reading.dotted_names import MISSING
from runyard.server.listing.field_paths import Field, look_up
from runyard.server.store.json_text import parse

_MOST_FIELDS = 24
_MOST_RUNS = 200_000
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

    def values(
        self, db: Connection, revisions: Mapping[int, int], fields: Iterable[Field]
    ) -> dict[Field, Values]:
        """What stands under these fields in runs that are at these revisions."""
        wanted = list(fields)
        with self._lock:
            known = [self._known.setdefault(field, {}) for field in wanted]
            for field in wanted:
                self._known.move_to_end(field)
            # The runs of which nothing is remembered, or something older.
            stale = sorted(
                {
                    key
                    for memory in known
                    for key, revision in revisions.items()
                    if memory.get(key, _NEVER)[0] != revision
                }
            )
            fresh = _read(db, stale, wanted)
            result: dict[Field, Values] = {}
            for field, memory in zip(wanted, known, strict=True):
                for key, value in fresh[field].items():
                    if _is_small(value):
                        memory[key] = (revisions[key], value)
                values = {key: memory[key][1] for key in revisions if key in memory}
                result[field] = values | fresh[field]
            self._forget()
        return result

    def _forget(self) -> None:
        while len(self._known) > _MOST_FIELDS:
            self._known.popitem(last=False)
        for memory in self._known.values():
            if len(memory) > _MOST_RUNS:
                memory.clear()


def _read(db: Connection, keys: list[int], fields: list[Field]) -> dict[Field, Values]:
    values: dict[Field, Values] = {field: {} for field in fields}
    columns = sorted({field.column for field in fields})
    for start in range(0, len(keys), _AT_ONCE):
        rows = db.execute(
            f"SELECT key, {', '.join(columns)} FROM runs "  # noqa: S608
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
