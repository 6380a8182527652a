"""Under which names the runs of a project have anything: for pickers of columns and charts.

Remembered, and brought up to date by the runs that changed: reading ten thousand configs takes a
third of a second.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from sqlite3 import Connection
from typing import Any

from runyard.server.history.columns import LAST_NUMBER, heads
from runyard.server.history.history import HISTORY
from runyard.server.history.metric_keys import dotted, key_reader
from runyard.server.history.reading.defined_metrics import of_metrics, read_defined
from runyard.server.store.changes import Changes, Kind
from runyard.server.store.database import TakesLong, is_for_short_questions, must_be_short
from runyard.server.store.json_text import parse
from runyard.server.store.sql import fetch_number

# After these a name may be nobody's any more.
_TAKES_AWAY = (Kind.DELETED, Kind.MOVED, Kind.REWOUND)
_MOST_PROJECTS = 50
_MOST_NAMES = 5_000
_AT_ONCE = 500
# Seconds: others only add what has just changed, unless they read the whole project.
_SHORT_WAIT = 0.05


@dataclass
class Name:
    """What is known of a name; `varies` is whether two runs differ there.

    A value of one of `types` tells nothing new.
    """

    kind: str
    first: Any
    varies: bool = False
    types: set[type] = field(default_factory=set)


@dataclass
class Names:
    """All names of a project."""

    revision: int = 0
    config: dict[str, Name] = field(default_factory=dict)
    summary: dict[str, Name] = field(default_factory=dict)
    metrics: set[str] = field(default_factory=set)
    events: set[str] = field(default_factory=set)
    media: dict[str, str] = field(default_factory=dict)
    defined: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass
class _Project:
    """One thread reads a project's texts at a time. `names` is None before the first has."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    names: Names | None = None


class ProjectKeys:
    """One for a database; threads may share it."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._lock = threading.Lock()
        self._known: dict[int, _Project] = {}

    def read(self, db: Connection, project: int, revision: int) -> dict[str, Any]:
        """All names, as of `revision` at least, which was the newest before this question."""
        with self._lock:
            entry = self._known.pop(project, None) or _Project()
            self._known[project] = entry
            if len(self._known) > _MOST_PROJECTS:
                self._known.pop(next(iter(self._known)))
        if not entry.lock.acquire(timeout=_SHORT_WAIT if is_for_short_questions() else -1):
            raise TakesLong
        try:
            names = entry.names
            changed = None if names is None else self._changed(project, names.revision)
            if names is None or changed is None:
                must_be_short(_count_runs(db, project))
                names = Names()
                _take_in(db, project, names, None, None)
            else:
                must_be_short(sum(map(len, changed)))
                _take_in(db, project, names, *changed)
            names.revision = revision
            entry.names = names
            return _as_json(names)
        finally:
            entry.lock.release()

    def _changed(self, project: int, since: int) -> tuple[list[int], list[int]] | None:
        """Runs with another row, and runs with other points; None: look at all of them."""
        news = self._changes.since(since, (Kind.RUN, Kind.HISTORY, *_TAKES_AWAY))
        if news is None:
            return None
        changes = [change for change in news if change.project == project]
        if any(change.kind in _TAKES_AWAY for change in changes):
            return None
        return (
            [change.key for change in changes if change.kind is Kind.RUN],
            [change.key for change in changes if change.kind is Kind.HISTORY],
        )


def _count_runs(db: Connection, project: int) -> int:
    return fetch_number(db, "SELECT count(*) FROM runs WHERE project = ?", (project,))


def _take_in(
    db: Connection,
    project: int,
    names: Names,
    rows: Sequence[int] | None,
    histories: Sequence[int] | None,
) -> None:
    for content in _contents(db, project, rows):
        stored = parse(content["config"])
        names.defined |= read_defined(stored)
        config = {
            name: entry["value"] if isinstance(entry, dict) and "value" in entry else entry
            for name, entry in stored.items()
            if name != "_wandb"
        }
        _note(names.config, {}, config)
        summary = parse(content["summary"])
        summary.pop("_wandb", None)
        _note(names.summary, names.media, summary)
    name_of = key_reader(db)
    for stream, key in _logged(db, project, histories):
        (names.metrics if stream == HISTORY else names.events).add(dotted(name_of(key)))


def _contents(db: Connection, project: int, keys: Sequence[int] | None) -> Iterable[sqlite3.Row]:
    if keys is None:
        yield from db.execute("SELECT config, summary FROM runs WHERE project = ?", (project,))
        return
    for start in range(0, len(keys), _AT_ONCE):
        yield from db.execute(
            "SELECT config, summary FROM runs WHERE key IN (SELECT value FROM json_each(?))",
            (json.dumps(keys[start : start + _AT_ONCE]),),
        )


def _logged(db: Connection, project: int, keys: Sequence[int] | None) -> set[tuple[int, int]]:
    """Which keys have numbers in which stream."""
    which = (
        "run IN (SELECT key FROM runs WHERE project = :project)"
        if keys is None
        else "run IN (SELECT value FROM json_each(:keys))"
    )
    values = {"project": project, "keys": json.dumps(keys), "last": LAST_NUMBER}
    logged = {
        (row["stream"], row["key"])
        for row in db.execute(
            f"SELECT DISTINCT stream, key FROM series WHERE {which} "
            "AND stream IN (0, 1) AND level = 0 AND kind <= :last",
            values,
        )
    }
    for row in db.execute(
        f"SELECT stream, data FROM batches WHERE {which} AND stream IN (0, 1)",
        values,
    ):
        logged |= {
            (row["stream"], key) for key, kind, _ in heads(row["data"]) if kind <= LAST_NUMBER
        }
    return logged


def runs_with_media(db: Connection, project: int, keys: Sequence[int]) -> dict[str, list[int]]:
    """Of these runs, those that have logged media of a name, in the order that they are given."""
    rows = db.execute(
        "SELECT key, summary FROM runs WHERE project = ? AND instr(summary, '\"_type\"') "
        "AND key IN (SELECT value FROM json_each(?))",
        (project, json.dumps(list(keys))),
    ).fetchall()
    summaries = {row["key"]: parse(row["summary"]) for row in rows}
    runs_by_name: dict[str, list[int]] = {}
    for key in keys:
        media: dict[str, str] = {}
        _note({}, media, summaries.get(key, {}))
        for name in media:
            runs_by_name.setdefault(name, []).append(key)
    return runs_by_name


def _note(known: dict[str, Name], media: dict[str, str], content: Mapping[str, Any]) -> None:
    for name, value in content.items():
        if isinstance(value, dict):
            for inner, leaf in _leaves("", {name: value}):
                _note_value(known, media, inner, leaf)
            continue
        # Most values of a large project are of a name that is known to vary: they cost one look.
        entry = known.get(name)
        if entry is None or type(value) not in entry.types:
            _note_value(known, media, name, value)


def _note_value(known: dict[str, Name], media: dict[str, str], name: str, value: Any) -> None:
    if isinstance(value, dict) and isinstance(value.get("_type"), str):
        media[name] = value["_type"]
        return
    entry = known.get(name)
    if entry is None:
        if len(known) < _MOST_NAMES:
            known[name] = Name(_kind(value), value)
        return
    entry.varies = entry.varies or entry.first != value
    if entry.kind != _kind(value) and value is not None:
        entry.kind = "other" if entry.first is not None else _kind(value)
    # Where the first run has null, the kind is that of the last value.
    if entry.varies and entry.first is not None:
        entry.types.add(type(value))


def _leaves(before: str, content: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    for name, value in content.items():
        if isinstance(value, dict) and value and "_type" not in value and before.count(".") < 8:
            yield from _leaves(f"{before}{name}.", value)
        else:
            yield f"{before}{name}", value


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else "other"


def _as_json(names: Names) -> dict[str, Any]:
    return {
        "config": _listed(names.config),
        "summary": _listed(names.summary),
        "metrics": _visible(names.metrics),
        "defined": of_metrics(names.defined, _visible(names.metrics)),
        "events": _visible(names.events),
        "media": [{"name": name, "type": kind} for name, kind in sorted(names.media.items())],
    }


def _listed(known: Mapping[str, Name]) -> list[dict[str, Any]]:
    return [
        {"name": name, "kind": entry.kind, "varies": entry.varies}
        for name, entry in sorted(known.items())
    ]


def _visible(names: Collection[str]) -> list[str]:
    """A client's own, `_step` and the like, can be put below a chart and need none of their own."""
    return sorted(name for name in names if not name.startswith("_"))
