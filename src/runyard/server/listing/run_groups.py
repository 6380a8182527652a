"""Runs that belong together: the same values under some fields, or the same config but for some."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any

from runyard.server.history.reading.dotted_names import MISSING
from runyard.server.listing.field_memory import FieldMemory
from runyard.server.listing.field_paths import JSON, LIST, Field
from runyard.server.store.database import must_be_short
from runyard.server.store.json_text import parse
from runyard.server.store.sql import fetch_number

_LONGEST_LABEL = 120


@dataclass(frozen=True)
class Group:
    label: str
    values: dict[str, Any]
    runs: list[int]


def by_fields(
    db: Connection,
    memory: FieldMemory,
    project: int,
    keys: Sequence[int] | None,
    fields: Sequence[Field],
) -> list[Group]:
    """One group for each combination of values; the largest first."""
    rows, values = memory.read(db, _which(keys), _parameters(project, keys), fields)
    groups: dict[str, Group] = {}
    for row in rows:
        held = {
            field.name: values[field].get(row["key"], MISSING)
            if field.kind == JSON
            else parse(row[field.column])
            if field.kind == LIST
            else row[field.column]
            for field in fields
        }
        _add(groups, held, row["key"])
    return _sorted(groups.values())


def by_config(
    db: Connection, project: int, keys: Sequence[int] | None, left_out: Collection[str]
) -> list[Group]:
    """One group for each config, whatever stands under the keys that are left out."""
    must_be_short(
        fetch_number(
            db,
            f"SELECT count(*) FROM runs WHERE {_which(keys)}",
            _parameters(project, keys),
        )
    )
    rows = db.execute(
        f"SELECT key, config FROM runs WHERE {_which(keys)}",
        _parameters(project, keys),
    )
    by_text: dict[str, Group] = {}
    for row in rows:
        _add(by_text, dict(_flat(parse(row["config"]), left_out)), row["key"])
    groups = list(by_text.values())
    same = _shared(groups)
    return _sorted(
        Group(
            _label({name: value for name, value in group.values.items() if name not in same}),
            {name: value for name, value in group.values.items() if name not in same},
            group.runs,
        )
        for group in groups
    )


def _flat(config: Mapping[str, Any], left_out: Collection[str]) -> Iterable[tuple[str, Any]]:
    for name, entry in sorted(config.items()):
        if name == "_wandb":
            continue
        value = entry["value"] if isinstance(entry, dict) and "value" in entry else entry
        yield from _leaves(name, value, left_out)


def _leaves(name: str, value: Any, left_out: Collection[str]) -> Iterable[tuple[str, Any]]:
    if name in left_out:
        return
    if isinstance(value, dict) and value:
        for part, item in sorted(value.items()):
            yield from _leaves(f"{name}.{part}", item, left_out)
    else:
        yield f"config.{name}", value


def _shared(groups: Sequence[Group]) -> set[str]:
    """Names under which all groups have the same value: they tell nothing apart."""
    if len(groups) < 2:
        return set()
    first = groups[0].values
    return {
        name
        for name, value in first.items()
        if all(name in group.values and group.values[name] == value for group in groups[1:])
    }


def _add(groups: dict[str, Group], values: dict[str, Any], key: int) -> None:
    mark = json.dumps(
        {name: "\0missing" if value is MISSING else value for name, value in values.items()},
        sort_keys=True,
    )
    if mark not in groups:
        groups[mark] = Group(_label(values), values, [])
    groups[mark].runs.append(key)


def _label(values: Mapping[str, Any]) -> str:
    parts = [
        f"{name.partition('.')[2] or name}: {_as_text(value)}" for name, value in values.items()
    ]
    text = ", ".join(parts) or "all runs"
    return text if len(text) <= _LONGEST_LABEL else f"{text[: _LONGEST_LABEL - 1]}…"


def _as_text(value: Any) -> str:
    if value is MISSING or value is None:
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _sorted(groups: Iterable[Group]) -> list[Group]:
    return sorted(groups, key=lambda group: (-len(group.runs), group.label))


def _which(keys: Sequence[int] | None) -> str:
    narrowed = "" if keys is None else " AND runs.key IN (SELECT value FROM json_each(:keys))"
    return f"runs.project = :project{narrowed}"


def _parameters(project: int, keys: Sequence[int] | None) -> dict[str, Any]:
    return {"project": project, "keys": None if keys is None else json.dumps(list(keys))}
