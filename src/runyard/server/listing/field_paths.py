"""What can be asked of a run in filters and orders: its columns, its config, its summary."""

from __future__ import annotations

import datetime
import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runyard.server.history.reading import dotted_names
from runyard.server.history.reading.dotted_names import MISSING

TEXT, TIME, LIST, JSON = "text", "time", "list", "json"


class UnknownField(LookupError):
    """A name that no run has anything under."""


@dataclass(frozen=True)
class Field:
    """A column of runs, or a path into the JSON that one holds."""

    name: str = field(compare=False)
    column: str
    kind: str
    path: tuple[str, ...] = ()


# How a column is selected: the expressions are ours, never a client's.
SELECTED = {
    "id": "runs.id",
    "name": "runs.name",
    "state": "runs.state",
    "group": 'runs."group"',
    "job_type": "runs.job_type",
    "sweep": "runs.sweep",
    "notes": "runs.notes",
    "host": "runs.host",
    "commit_hash": "runs.commit_hash",
    "username": "(SELECT users.name FROM users WHERE users.key = runs.user)",
    "created_at": "runs.created_at",
    "heartbeat_at": "coalesce(runs.heartbeat_at, runs.created_at)",
    "tags": "runs.tags",
    "config": "runs.config",
    "summary": "runs.summary",
}
# As clients call them. A run's `name` is its id; what people call it is its display name.
_NAMES = {
    "name": ("id", TEXT),
    "displayName": ("name", TEXT),
    "state": ("state", TEXT),
    "group": ("group", TEXT),
    "groupName": ("group", TEXT),
    "jobType": ("job_type", TEXT),
    "sweep": ("sweep", TEXT),
    "sweepName": ("sweep", TEXT),
    "notes": ("notes", TEXT),
    "description": ("notes", TEXT),
    "host": ("host", TEXT),
    "commit": ("commit_hash", TEXT),
    "username": ("username", TEXT),
    "user": ("username", TEXT),
    "createdAt": ("created_at", TIME),
    "heartbeat": ("heartbeat_at", TIME),
    "heartbeatAt": ("heartbeat_at", TIME),
    "updatedAt": ("heartbeat_at", TIME),
    "tags": ("tags", LIST),
}
# Each dot may be part of a key or lie between two: more of them are more ways than anyone needs.
_LONGEST_PATH = 20
_PATHS = {"config": "config", "summary_metrics": "summary", "summaryMetrics": "summary"}


def find_field(name: str) -> Field:
    """A field by what clients call it: `state`, `created_at`, `config.lr.value`, ..."""
    head, dot, rest = name.partition(".")
    if dot and rest and (head in _PATHS or head == "summary"):
        path = tuple(rest.split("."))
        if len(path) > _LONGEST_PATH:
            raise UnknownField(f"{name[:100]!r} has more than {_LONGEST_PATH} parts")
        return Field(name, _PATHS.get(head, "summary"), JSON, path)
    known = _NAMES.get(name) or _NAMES.get(_camel(name))
    if known is None:
        names = [*_NAMES, "config.KEY", "summary_metrics.KEY"]
        guess = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {guess[0]}?" if guess else f"there are {', '.join(names)}"
        raise UnknownField(f"runs have no field {name[:100]!r}; {hint}")
    return Field(name, *known)


def look_up(content: Mapping[str, Any], field: Field) -> Any:
    """What stands under a field's path in a config or a summary; MISSING where nothing does."""
    if field.column == "config":
        return _look_up_in_config(content, field.path)
    return dotted_names.look_up(content, field.path, in_lists=True)


def _look_up_in_config(config: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """Entries are {"value": ...}; `.value` may be written or left out."""
    for length in range(len(path), 0, -1):
        entry = config.get(".".join(path[:length]), MISSING)
        if entry is MISSING:
            continue
        if isinstance(entry, dict) and "value" in entry:
            entry = entry["value"]
        rest = path[length:]
        if rest and rest[0] == "value":
            value = dotted_names.look_up(entry, rest[1:], in_lists=True)
            if value is not MISSING:
                return value
        value = dotted_names.look_up(entry, rest, in_lists=True)
        if value is not MISSING:
            return value
    return MISSING


def to_time(value: float | str) -> int:
    """Whole seconds, as clients are told times: what they got from us, they can compare with."""
    if isinstance(value, str):
        text = value.strip().replace("Z", "+00:00").replace("z", "+00:00").replace(" ", "T", 1)
        try:
            moment = datetime.datetime.fromisoformat(text)
        except ValueError as error:
            raise ValueError(f"{value[:60]!r} is not a time like 2026-01-31T12:00:00") from error
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=datetime.timezone.utc)
        value = moment.timestamp()
    # In milliseconds it would otherwise be the year 5138 or later.
    seconds = value / 1000 if abs(value) >= 1e11 else value
    return max(-(2**53), min(2**53, math.floor(seconds)))


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)
