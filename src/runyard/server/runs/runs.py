"""Runs: announced, listed, found by their place or by what a person types, edited by hand."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from sqlite3 import Connection
from typing import Any

from runyard.server.people.permissions import Entities
from runyard.server.runs.typed_names import find_meant, in_place, of_entities
from runyard.server.store import sql
from runyard.server.store.names import invent_name
from runyard.server.store.sql import Row, fetch_number, fetch_one

# The project of deleted runs (`tracking/trash.py`): no name that a client may give holds a slash.
TRASH = "/trash"
NOT_TRASH = f"projects.name <> '{TRASH}'"

_SELECT = (
    "SELECT runs.*, projects.entity AS entity, projects.name AS project_name, "
    "(SELECT name FROM users WHERE users.key = runs.user) AS user_name "
    f"FROM runs JOIN projects ON projects.key = runs.project AND {NOT_TRASH} "
)

# Not `UPDATE ... FROM`: SQLite has it since 3.33, and Red Hat 8 has 3.26.
_SET_SUMMARIES = """
UPDATE runs SET summary = CAST(substr(
    :texts, json_extract(:places, '$."' || key || '"[0]'),
    json_extract(:places, '$."' || key || '"[1]')) AS TEXT)
WHERE key IN (SELECT CAST(json_each.key AS INTEGER) FROM json_each(:places))
"""

# By itself SQLite takes a larger index, which has the column itself.
_ALIVE = "runs INDEXED BY runs_alive WHERE state IN ('running', 'preempting')"


def ensure_project(db: Connection, entity: str, name: str, now: float) -> int:
    db.execute(
        "INSERT INTO projects (entity, name, created_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        (entity, name, now),
    )
    question = "SELECT key FROM projects WHERE entity = ? AND name = ?"
    return fetch_number(db, question, (entity, name))


def new_name(db: Connection, project: int) -> str:
    """A name for a run that was given none; no two runs of a project get the same number."""
    return invent_name(
        1 + fetch_number(db, "SELECT runs_made FROM projects WHERE key = ?", (project,))
    )


def find_announced(db: Connection, run_id: str, user: int) -> Row | None:
    """A run that this user's `runyard run` or agent announced, and no client has written to yet."""
    return fetch_one(
        db,
        _SELECT + "WHERE runs.id = ? AND runs.seen_client = 0 AND runs.user = ? AND "
        "(runs.command IS NOT NULL OR EXISTS (SELECT 1 FROM trials WHERE trials.run = runs.key)) "
        "ORDER BY runs.created_at DESC LIMIT 1",
        (run_id, user),
    )


def take_id(db: Connection, run: Row, project: int, run_id: str) -> None:
    """An announced run is where its program says, and has the id that its program says."""
    columns: dict[str, Any] = {"project": project}
    if run["id"] != run_id:
        columns |= {"id": run_id, "announced_id": run["id"]}
    update(db, run["key"], **columns)


def by_key(db: Connection, key: int) -> Row | None:
    return fetch_one(db, _SELECT + "WHERE runs.key = ?", (key,))


def by_path(db: Connection, entity: str, project: str, run_id: str) -> Row | None:
    return fetch_one(
        db,
        _SELECT + "WHERE projects.entity = ? AND projects.name = ? AND runs.id = ?",
        (entity, project, run_id),
    )


def by_words(db: Connection, words: str, entities: Entities | None = None) -> Row | None:
    """The run that a person means: by id, name, or the beginning of an id; PROJECT/... narrows.

    Only runs of these entities, where some are given.
    """
    place, _, name = words.rpartition("/")
    if not name:
        return None
    places, values = in_place(place or None)
    ways = (
        ([*places, "runs.id = ?"], [*values, name]),
        ([*places, "runs.name = ?"], [*values, name]),
        # A trial whose program named another place answers in its sweep's project as well.
        (["runs.id = ?", _of_sweep_in(places)], [name, *values]),
        ([*places, "runs.announced_id = ?"], [*values, name]),
        (["runs.name = ?"], [words]),  # Names may hold slashes; ids and projects do not.
        # A range, not LIKE: it takes every character as it is, and uses the index.
        ([*places, "runs.id >= ?", "runs.id < ?"], [*values, name, f"{name}\U0010ffff"]),
    )
    return find_meant(db, _SELECT, "runs.created_at", ways, entities)


def _of_sweep_in(places: Sequence[str]) -> str:
    """A condition: the run is a trial of a sweep in that place."""
    tests = " AND ".join(test.replace("projects.", "home.") for test in places) or "0"
    return (
        "EXISTS (SELECT 1 FROM trials JOIN sweeps ON sweeps.key = trials.sweep "
        "JOIN projects AS home ON home.key = sweeps.project "
        f"WHERE trials.run = runs.key AND {tests})"
    )


def newest(
    db: Connection,
    project: str | None,
    state: str | None,
    limit: int | None,
    entities: Entities | None = None,
    *,
    alone: bool = False,
    sweep: int | None = None,
) -> list[int]:
    """The keys of runs, the newest first; only of these entities, where some are given.

    With `alone`, those that are no trial of a sweep; with `sweep`, the trials of this one.
    """
    tests, values = list[str](), list[str | int]()
    if sweep is not None:
        tests.append("runs.key IN (SELECT run FROM trials WHERE sweep = ?)")
        values.append(sweep)
    if alone:
        tests.append("NOT EXISTS (SELECT 1 FROM trials WHERE trials.run = runs.key)")
    if state is not None:
        tests.append("runs.state = ?")
        values.append(state)
    for more, their_values in (in_place(project), of_entities(entities)):
        tests += more
        values += their_values
    rows = db.execute(
        "SELECT runs.key FROM runs JOIN projects ON projects.key = runs.project "
        f"AND {NOT_TRASH} WHERE {' AND '.join(tests or '1')} "
        "ORDER BY runs.created_at DESC, runs.key DESC LIMIT ?",
        [*values, -1 if limit is None else limit],
    )
    return [row[0] for row in rows]


def count_of(db: Connection, entities: Entities | None) -> tuple[int, int]:
    """How many runs these entities have, or all do, and how many of them are alive."""
    if entities is None:
        return (
            fetch_number(db, "SELECT count(*) - (SELECT count(*) FROM trash) FROM runs"),
            fetch_number(db, f"SELECT count(*) FROM {_ALIVE}"),
        )
    (condition,), values = of_entities(entities)
    where = f"SELECT key FROM projects WHERE {NOT_TRASH} AND {condition}"
    return (
        fetch_number(db, f"SELECT count(*) FROM runs WHERE project IN ({where})", values),
        fetch_number(db, f"SELECT count(*) FROM {_ALIVE} AND project IN ({where})", values),
    )


def create_launched(
    db: Connection, new: Mapping[str, Any], *, entity: str, user: int, now: float
) -> Row:
    """Record a run before its program starts. Called again with the same id, it changes nothing."""
    run = by_path(db, entity, new["project"], new["id"])
    if run is None and not (new.get("is_place_named") and new.get("entity")):
        run = _find_moved(db, new, user)
    if run is None:
        project = ensure_project(db, entity, new["project"], now)
        columns = {name: new.get(name) for name in ("notes", "group", "host", "folder")}
        columns |= {"id": new["id"], "project": project, "user": user, "created_at": now}
        columns["name"] = new.get("name") or new_name(db, project)
        columns |= {"tags": json.dumps(new.get("tags") or []), "state": "pending"}
        columns["command"] = json.dumps(new["command"])
        run = by_key(db, sql.insert(db, "runs", columns))
        assert run is not None
    return run


def _find_moved(db: Connection, new: Mapping[str, Any], user: int) -> Row | None:
    """The run of an earlier start of the same command with this id, in the project that is named.

    Its program named another place, and will again: a new run here would stay empty.
    """
    project = new["project"] if new.get("is_place_named") else None
    return fetch_one(
        db,
        _SELECT + "WHERE runs.id = ? AND runs.user = ? AND runs.seen_client = 1 "
        "AND runs.command = ? AND runs.folder IS ? AND (? IS NULL OR projects.name = ?) "
        "ORDER BY runs.created_at DESC LIMIT 1",
        (new["id"], user, json.dumps(new["command"]), new.get("folder"), project, project),
    )


def note_start(db: Connection, key: int, now: float) -> None:
    db.execute("UPDATE runs SET started_at = ? WHERE key = ? AND started_at IS NULL", (now, key))


def update(db: Connection, /, key: int, **columns: Any) -> None:
    if columns:
        sql.update(db, "runs", {"key": key}, columns)


def hear(db: Connection, heard: Sequence[tuple[int, str | None]], now: float) -> None:
    """Clients at work on these runs spoke, some with a new summary."""
    db.execute(
        "UPDATE runs SET seen_client = 1, heartbeat_at = ? "
        "WHERE key IN (SELECT value FROM json_each(?))",
        (now, json.dumps([key for key, _ in heard])),
    )
    pieces = sql.Pieces()
    places = {key: pieces.add(summary.encode()) for key, summary in heard if summary is not None}
    if places:
        db.execute(_SET_SUMMARIES, {"texts": pieces.whole(), "places": json.dumps(places)})


def end_state(row: Row, state: str) -> str:
    """How a run ended: whatever its exit code says, it was killed if it was asked to stop."""
    return "killed" if row["stop_asked"] else state


def revived(row: Row) -> dict[str, Any]:
    """What changes when a run makes itself heard: one that only seemed dead is alive again."""
    seemed_dead = row["state"] in ("crashed", "preempted") and row["exit_code"] is None
    if not seemed_dead and row["state"] != "pending":
        return {}
    return {"state": "preempting" if row["preempting"] else "running", "ended_at": None}


def by_keys(db: Connection, keys: Sequence[int]) -> list[Row]:
    """Whole rows, in the order of the keys; those that are gone are left out."""
    question = _SELECT + "WHERE runs.key IN (SELECT value FROM json_each(?))"
    rows = {row["key"]: row for row in db.execute(question, (json.dumps(keys),))}
    return [rows[key] for key in keys if key in rows]


def edit_run(db: Connection, key: int, changes: Mapping[str, Any]) -> None:
    columns = dict(changes)
    if "tags" in columns:
        columns["tags"] = json.dumps(list(dict.fromkeys(columns["tags"])))
    update(db, key, **columns)


def rename_runs(db: Connection, project: int, names: Mapping[int, str]) -> int:
    """Those runs that are the project's; how many they are."""
    rows = db.execute(
        "SELECT key FROM runs WHERE project = ? AND key IN (SELECT value FROM json_each(?))",
        (project, json.dumps(list(names))),
    ).fetchall()
    for row in rows:
        edit_run(db, row["key"], {"name": names[row["key"]]})
    return len(rows)


def change_tags(
    db: Connection, project: int, keys: Sequence[int], add: Collection[str], remove: Collection[str]
) -> int:
    """Of those runs that are the project's; how many have changed."""
    rows = db.execute(
        "SELECT key, tags FROM runs WHERE project = ? AND key IN (SELECT value FROM json_each(?))",
        (project, json.dumps(list(keys))),
    ).fetchall()
    changed = 0
    for row in rows:
        before: list[str] = json.loads(row["tags"])
        after = [tag for tag in dict.fromkeys((*before, *add)) if tag not in remove]
        if after != before:
            update(db, row["key"], tags=json.dumps(after))
            changed += 1
    return changed
