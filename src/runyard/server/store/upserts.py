"""What a client says of its run, and what becomes of the run by it."""

from __future__ import annotations

import json
import secrets
import sqlite3
from dataclasses import dataclass
from typing import Any

from runyard.server import states
from runyard.server.store import attempts, deletion, runs
from runyard.server.store.names import invent_name
from runyard.server.store.runs import Row


class Unknown(LookupError):
    """No run has that key."""


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
        }
        return {name: value for name, value in given.items() if value is not None}


def new_run_id() -> str:
    alphabet = "abcdefghijklmnopqrstuvwxyz0123456789"
    return "".join(secrets.choice(alphabet) for _ in range(8))


def upsert(connection: sqlite3.Connection, said: Upsert, now: float) -> tuple[Row, bool]:
    """Create or update the run a client speaks of. Says whether it is new to clients."""
    run = _find(connection, said, now)
    columns = said.columns()
    if run is None:
        _refuse_deleted(connection, said)
        created = True
        key = _create(connection, said, now)
    else:
        created = not run["seen_client"]
        key = run["key"]
    if said.starts_client:
        columns["seen_client"] = 1
        if run is None or said.key is not None or not _was_seen_to_end(connection, run):
            columns |= {"state": "running", "preempting": 0, "heartbeat_at": now}
            columns |= {"exit_code": None, "ended_at": None, "stop_asked": 0}
        if run is None or run["started_at"] is None:
            columns["started_at"] = now
    runs.update(connection, key, **columns)
    stored = runs.by_key(connection, key)
    assert stored is not None
    return stored, created


def _refuse_deleted(connection: sqlite3.Connection, said: Upsert) -> None:
    """What the client of a deleted run still has to say does not bring the run back."""
    is_late = said.id is not None and not said.starts_client and said.state is None
    if is_late and deletion.is_deleted(connection, said.entity, said.project, said.id or ""):
        raise Unknown(f"run {said.entity}/{said.project}/{said.id} was deleted")


def _create(connection: sqlite3.Connection, said: Upsert, now: float) -> int:
    project = runs.ensure_project(connection, said.entity, said.project, now)
    cursor = connection.execute(
        "INSERT INTO runs (id, project, user, name, state, heartbeat_at, created_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            said.id or new_run_id(),
            project,
            said.user,
            said.name or invent_name(connection, project),
            # Only who makes a run by hand names a state; nobody changes one that way later.
            said.state if said.state in states.ALL else "pending",
            now if said.state in states.ALIVE else None,
            now,
        ),
    )
    return cursor.lastrowid or 0


def _was_seen_to_end(connection: sqlite3.Connection, run: Row) -> bool:
    """Whether runyard itself saw the last attempt end, and nothing has gone on since.

    `wandb sync` of what a dead program left looks like a client that starts, but has no life to
    tell of: it must not undo the end that was seen. A client that resumes names the run's key.
    """
    attempt = attempts.last(connection, run["key"])
    ended = attempt is not None and attempt["exit_code"] is not None
    return ended and run["state"] not in states.ALIVE


def _find(connection: sqlite3.Connection, said: Upsert, now: float) -> Row | None:
    if said.key is not None:
        run = runs.by_key(connection, said.key)
        if run is not None:
            return run
        if said.id is None:
            raise Unknown("there is no such run any more")
    if said.id is None:
        return None
    run = runs.by_path(connection, said.entity, said.project, said.id)
    if run is None:
        # `runyard run` announced it, and the program then names another project: it is that run.
        run = runs.find_announced(connection, said.id)
        if run is not None:
            project = runs.ensure_project(connection, said.entity, said.project, now)
            runs.update(connection, run["key"], project=project)
    return run
