"""Runs: created, updated by their client, listed, found by what a person types."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runyard.server import states
from runyard.server.store.names import invent_name

Row = sqlite3.Row

_SELECT = (
    "SELECT runs.*, projects.entity AS entity, projects.name AS project_name "
    "FROM runs JOIN projects ON projects.key = runs.project "
)


class Ambiguous(LookupError):
    """More than one run answers to what was typed."""

    def __init__(self, rows: list[Row]) -> None:
        super().__init__()
        self.rows = rows


@dataclass(frozen=True)
class Upsert:
    """What a client says of its run. None leaves a field as it is."""

    id: str | None
    entity: str
    project: str
    user: int
    key: int | None = None
    name: str | None = None
    config: str | None = None
    summary: str | None = None
    tags: list[str] | None = None
    notes: str | None = None
    group: str | None = None
    job_type: str | None = None
    sweep: str | None = None
    host: str | None = None
    program: str | None = None
    commit_hash: str | None = None
    repo: str | None = None
    state: str | None = None

    @property
    def starts_client(self) -> bool:
        """Only the first message of a client process names its host."""
        return self.host is not None

    def columns(self) -> dict[str, Any]:
        given = {
            "name": self.name,
            "config": self.config,
            "summary": self.summary,
            "tags": None if self.tags is None else json.dumps(self.tags),
            "notes": self.notes,
            "group": self.group,
            "job_type": self.job_type,
            "sweep": self.sweep,
            "host": self.host,
            "program": self.program,
            "commit_hash": self.commit_hash,
            "repo": self.repo,
            "state": self.state if self.state in states.ALL else None,
        }
        return {name: value for name, value in given.items() if value is not None}


def new_run_id() -> str:
    alphabet = "abcdefghijklmnopqrstuvwxyz0123456789"
    return "".join(secrets.choice(alphabet) for _ in range(8))


def ensure_project(connection: sqlite3.Connection, entity: str, name: str, now: float) -> int:
    connection.execute(
        "INSERT INTO projects (entity, name, created_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        (entity, name, now),
    )
    row = connection.execute(
        "SELECT key FROM projects WHERE entity = ? AND name = ?", (entity, name)
    ).fetchone()
    key: int = row["key"]
    return key


def by_key(connection: sqlite3.Connection, key: int) -> Row | None:
    row: Row | None = connection.execute(_SELECT + "WHERE runs.key = ?", (key,)).fetchone()
    return row


def by_path(connection: sqlite3.Connection, entity: str, project: str, run_id: str) -> Row | None:
    row: Row | None = connection.execute(
        _SELECT + "WHERE projects.entity = ? AND projects.name = ? AND runs.id = ?",
        (entity, project, run_id),
    ).fetchone()
    return row


def by_words(connection: sqlite3.Connection, words: str) -> Row | None:
    """The run that a person means: by id, name, or the beginning of an id; PROJECT/... narrows."""
    project, _, name = words.rpartition("/")
    project = project.rpartition("/")[2]
    where, given = ("", []) if not project else ("projects.name = ? AND ", [project])
    for test, value in (
        ("runs.id = ?", name),
        ("runs.name = ?", name),
        ("substr(runs.id, 1, ?) = ?", name),
    ):
        values = [len(name), name] if "substr" in test else [value]
        rows = connection.execute(
            f"{_SELECT} WHERE {where}{test} ORDER BY runs.created_at DESC LIMIT 10",
            [*given, *values],
        ).fetchall()
        if len(rows) > 1:
            raise Ambiguous(rows)
        if rows:
            found: Row = rows[0]
            return found
    return None


def newest(
    connection: sqlite3.Connection, project: str | None, state: str | None, limit: int | None
) -> list[Row]:
    """Runs, the newest first."""
    tests, values = ["1"], list[Any]()
    if project is not None:
        entity, _, name = project.rpartition("/")
        tests.append("projects.name = ?")
        values.append(name)
        if entity:
            tests.append("projects.entity = ?")
            values.append(entity)
    if state is not None:
        tests.append("runs.state = ?")
        values.append(state)
    return connection.execute(
        f"{_SELECT} WHERE {' AND '.join(tests)} "
        "ORDER BY runs.created_at DESC, runs.key DESC LIMIT ?",
        [*values, -1 if limit is None else limit],
    ).fetchall()


def create_launched(
    connection: sqlite3.Connection,
    new: Mapping[str, Any],
    *,
    entity: str,
    user: int,
    now: float,
) -> Row:
    """Record a run before its program starts. Called again with the same id, it changes nothing."""
    project = ensure_project(connection, entity, new["project"], now)
    run = by_path(connection, entity, new["project"], new["id"])
    if run is None:
        connection.execute(
            'INSERT INTO runs (id, project, user, name, state, tags, notes, "group", host, '
            "command, folder, created_at) VALUES (?, ?, ?, ?, 'pending', ?, ?, ?, ?, ?, ?, ?)",
            (
                new["id"],
                project,
                user,
                new.get("name") or invent_name(connection, project),
                json.dumps(new.get("tags") or []),
                new.get("notes"),
                new.get("group"),
                new.get("host"),
                json.dumps(new["command"]),
                new.get("folder"),
                now,
            ),
        )
        run = by_path(connection, entity, new["project"], new["id"])
        assert run is not None
    return run


def upsert(connection: sqlite3.Connection, said: Upsert, now: float) -> tuple[Row, bool]:
    """Create or update the run a client speaks of. Says whether it is new to clients."""
    run = _find(connection, said, now)
    created = run is None
    if run is None:
        project = ensure_project(connection, said.entity, said.project, now)
        cursor = connection.execute(
            "INSERT INTO runs (id, project, user, name, state, created_at) "
            "VALUES (?, ?, ?, ?, 'pending', ?)",
            (
                said.id or new_run_id(),
                project,
                said.user,
                said.name or invent_name(connection, project),
                now,
            ),
        )
        key = cursor.lastrowid or 0
    else:
        key = run["key"]
        created = not run["seen_client"]
    columns = said.columns()
    if said.starts_client:
        columns |= {"state": "running", "seen_client": 1, "preempting": 0, "heartbeat_at": now}
        columns |= {"exit_code": None, "ended_at": None}
        if run is None or run["started_at"] is None:
            columns["started_at"] = now
    _update(connection, key, columns)
    stored = by_key(connection, key)
    assert stored is not None
    return stored, created


def _find(connection: sqlite3.Connection, said: Upsert, now: float) -> Row | None:
    if said.key is not None:
        return by_key(connection, said.key)
    if said.id is None:
        return None
    run = by_path(connection, said.entity, said.project, said.id)
    if run is None:
        # `runyard run` announced it, and the program then names another project: it is that run.
        run = connection.execute(
            _SELECT + "WHERE runs.id = ? AND runs.seen_client = 0 AND runs.command IS NOT NULL",
            (said.id,),
        ).fetchone()
        if run is not None:
            project = ensure_project(connection, said.entity, said.project, now)
            _update(connection, run["key"], {"project": project})
    return run


def _update(connection: sqlite3.Connection, key: int, columns: Mapping[str, Any]) -> None:
    if columns:
        settings = ", ".join(f'"{name}" = ?' for name in columns)
        # The names are ours, never a client's.
        connection.execute(
            f"UPDATE runs SET {settings} WHERE key = ?",  # noqa: S608
            [*columns.values(), key],
        )


def update(connection: sqlite3.Connection, key: int, **columns: Any) -> None:
    _update(connection, key, columns)
