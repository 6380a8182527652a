"""What a client says of its run, and what becomes of the run by it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any

from runyard.server.history import archives
from runyard.server.history.forks import Fork
from runyard.server.history.history import HISTORY, count_rows
from runyard.server.people import api_keys
from runyard.server.processes import attempts, clients
from runyard.server.processes.origins import Branch, Origin, read_internals, read_origin
from runyard.server.runs import runs, states
from runyard.server.store.names import new_id
from runyard.server.store.sql import Row, insert
from runyard.server.store.store import Needed, Transfer
from runyard.server.sweeps.ledger import late_results, leases, trials
from runyard.server.tracking import deletion

# Of a run, as its client sends them.
_COLUMNS = (
    *("name", "config", "summary", "notes", "group", "job_type", "sweep"),
    *("host", "program", "commit_hash", "repo"),
)
# A sync of several segments begins the next one right after the end of another.
_BETWEEN_SEGMENTS = 60.0


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
    # In shared mode: which of the run's writers this is.
    writer: str = ""
    # The id of the key that the client came with: `runyard run` gives each program one.
    key_id: str = ""

    @property
    def starts_client(self) -> bool:
        """Only the first message of a client process names its host."""
        return self.host is not None

    def columns(self) -> dict[str, Any]:
        columns = {name: value for name in _COLUMNS if (value := getattr(self, name)) is not None}
        return columns if self.tags is None else {**columns, "tags": json.dumps(self.tags)}


def upsert(
    db: Connection, message: Upsert, now: float, made: Sequence[Transfer] = ()
) -> tuple[Row, bool]:
    """Create or update the run a client speaks of. Says whether it is new to clients.

    Raises `Needed` where rows have to be moved first; it is then called again, with the transfers
    that were `made`.
    """
    origin = read_origin(message.config, message.program)
    run = _find(db, message, origin, now)
    columns = message.columns()
    if run is None:
        _refuse_deleted(db, message)
        created = True
        key = _create(db, message, now)
    else:
        created = not run["seen_client"]
        key = run["key"]
    is_late = _is_late(db, key, message, origin)
    begins = message.starts_client and not is_late
    if begins:
        columns |= _begin_client(db, key, run, message, origin, now, made)
    elif not is_late:
        clients.note(db, key, origin, message.writer)
    if run is not None and run["seen_client"] and (message.writer or origin.is_sync):
        columns |= _complemented(db, run, columns, message, origin)
    runs.update(db, key, **columns)
    stored = runs.by_key(db, key)
    assert stored is not None
    if begins and stored["sweep"] is not None and not origin.is_sync:
        stored = _hear_trial(db, stored, now)
    if message.summary is not None and stored["sweep"] is not None:
        late_results.measure_again(db, key, now)
    return stored, created


def _is_late(db: Connection, key: int, message: Upsert, origin: Origin) -> bool:
    """Whether a client of an earlier attempt of a trial changes something of its run."""
    if message.writer or origin.is_sync:
        return False
    earlier = trials.earlier_clients(db, key)
    client = clients.of_earlier_attempt(db, key, message.key_id, earlier)
    if client is None:
        return False
    if not message.starts_client:
        return clients.newest_after(db, key, earlier) is not None
    # The next attempt may come with the same key.
    if client["started_at"] is None or origin.started_at is None:
        return False
    return clients.is_same_start(client["started_at"], origin.started_at)


def _hear_trial(db: Connection, run: Row, now: float) -> Row:
    """The program of a trial has begun; it may have been asked to stop before it could hear it."""
    trial = leases.hear_client(db, run, now)
    if trial is not None and trial["stop"] is not None:
        runs.update(db, run["key"], stop_asked=1)
    return runs.by_key(db, run["key"]) or run


def _begin_client(
    db: Connection,
    key: int,
    run: Row | None,
    message: Upsert,
    origin: Origin,
    now: float,
    made: Sequence[Transfer],
) -> dict[str, Any]:
    """A process begins to write: what becomes of the run, and of what it holds already."""
    columns: dict[str, Any] = {"seen_client": 1, "heartbeat_at": now}
    kind = "shared" if message.writer else "sync" if origin.is_sync else "live"
    archive = None
    # Up to 0.17, who resumes asks where the run stopped, but does not name the run's key.
    has_asked = clients.has_asked_to_resume(db, key, now)
    resumes = has_asked or message.key is not None
    if run is not None and not has_asked:
        earlier = trials.earlier_clients(db, key)
        known = clients.is_known(db, run, kind, message.writer, origin.started_at, earlier=earlier)
        if known:
            clients.note(db, key, origin, message.writer)
            clients.note_key(db, key, message.key_id, message.writer)
            return columns
    anew = run is not None and not resumes and _begins_anew(run, origin, kind)
    if run is not None and anew and not _is_next_segment(db, run, message, now):
        if archives.has_rows(db, key):
            raise Needed(key, archives.Restart(key, now))
        archive = next(
            (transfer.number for transfer in made if isinstance(transfer, archives.Restart)), None
        )
        columns["summary"] = message.summary or "{}"
    if origin.branch is not None and not any(isinstance(transfer, Fork) for transfer in made):
        _fork_first(db, key, run, message, origin.branch)
    clients.begin(
        db,
        key,
        kind,
        writer=message.writer,
        started_at=origin.started_at,
        archive=archive,
        key_id=message.key_id,
        now=now,
    )
    if run is None or run["started_at"] is None:
        columns["started_at"] = now if origin.started_at is None else origin.started_at
    if run is None or _comes_alive(db, run, message, origin, kind):
        columns |= {"state": "running", "preempting": 0, "exit_code": None, "ended_at": None}
        columns["stop_asked"] = 0
    return columns


def _fork_first(db: Connection, key: int, run: Row | None, message: Upsert, branch: Branch) -> None:
    """A fork begins with rows of its parent. Until it has them, no client of it has begun."""
    parent = runs.by_path(db, message.entity, message.project, branch.run_id)
    if parent is None or parent["key"] == key:
        return
    has_begun = run is not None and run["seen_client"]
    if not has_begun or not count_rows(db, key, HISTORY):
        raise Needed(key if run is not None else 0, Fork(parent["key"], key, branch.step))


def ensure(db: Connection, message: Upsert, now: float) -> int:
    """The key of the run a client speaks of, which no client has begun yet."""
    run = _find(db, message, read_origin(message.config, message.program), now)
    return _create(db, message, now) if run is None else run["key"]


def _begins_anew(run: Row, origin: Origin, kind: str) -> bool:
    """Whether a process that does not resume uses the id of a run that has ended.

    W&B documents that this overwrites. Rows of a run that no client has begun are a fork's.
    """
    has_ended = run["seen_client"] and run["state"] not in states.ALIVE
    return kind == "live" and origin.is_known and bool(has_ended)


def _is_next_segment(db: Connection, run: Row, message: Upsert, now: float) -> bool:
    """Whether a program has just synced into the run, and now most likely brings the next segment.

    A program that syncs without the `wandb` command says only at the end that it does. The client
    numbers a segment's rows by how many there are when it begins: they are not to be put aside.
    """
    newest = clients.newest(db, run["key"])
    if newest is None or newest["kind"] != "sync" or newest["ended_at"] is None:
        return False
    is_same_program = (message.host, message.program) == (run["host"], run["program"])
    return is_same_program and newest["ended_at"] > now - _BETWEEN_SEGMENTS


def _comes_alive(db: Connection, run: Row, message: Upsert, origin: Origin, kind: str) -> bool:
    if kind == "sync":
        # What it brings is over; only a run that nobody has seen before goes through its life.
        is_new = run["state"] == "pending" or not run["seen_client"]
        return is_new and not _was_seen_to_end(db, run)
    return message.key is not None or origin.is_known or not _was_seen_to_end(db, run)


def _complemented(
    db: Connection, run: Row, columns: dict[str, Any], message: Upsert, origin: Origin
) -> dict[str, Any]:
    """What one of several writers, or of several segments, says: beside what the others said."""
    merged: dict[str, Any] = {}
    if message.config is not None:
        old, new = json.loads(run["config"]), json.loads(message.config)
        newer = bool(message.writer) or _is_newest(db, run["key"], origin)
        both = {**old, **new} if newer else {**new, **old}
        _join_environments(both, run["config"], message.config)
        merged["config"] = json.dumps(both)
    if message.tags is not None:
        merged["tags"] = json.dumps(list(dict.fromkeys([*json.loads(run["tags"]), *message.tags])))
    if origin.is_sync and not message.writer and run["host"]:
        # The machine that synced is not the one that computed.
        merged |= {name: run[name] for name in ("host", "program") if name in columns}
    return merged


def _is_newest(db: Connection, run: int, origin: Origin) -> bool:
    """Whether no process of the run began after this one."""
    if origin.started_at is None:
        return False
    starts = [client["started_at"] for client in clients.of_run(db, run)]
    return all(
        start is None
        or start <= origin.started_at
        or clients.is_same_start(start, origin.started_at)
        for start in starts
    )


def _join_environments(config: dict[str, Any], old: str, new: str) -> None:
    """Each writer tells of its own surroundings under its own name."""
    entry = config.get("_wandb")
    environments = [read_internals(text).get("e") for text in (old, new)]
    writers = {
        name: environment
        for each in environments
        if isinstance(each, dict)
        for name, environment in each.items()
    }
    if writers and isinstance(entry, dict) and isinstance(entry.get("value"), dict):
        config["_wandb"] = {**entry, "value": {**entry["value"], "e": writers}}


def _refuse_deleted(db: Connection, message: Upsert) -> None:
    """What the client of a deleted run still has to say does not bring the run back."""
    is_late = message.id is not None and not message.starts_client and message.state is None
    if is_late and deletion.is_deleted(db, message.entity, message.project, message.id or ""):
        raise Unknown(f"run {message.entity}/{message.project}/{message.id} was deleted")


def _create(db: Connection, message: Upsert, now: float) -> int:
    project = runs.ensure_project(db, message.entity, message.project, now)
    columns = {
        "id": message.id or new_id(),
        "project": project,
        "user": message.user,
        "name": message.name or runs.new_name(db, project),
        # Only who makes a run by hand names a state; nobody changes one that way later.
        "state": message.state if message.state in states.ALL else "pending",
        "heartbeat_at": now if message.state in states.ALIVE else None,
        "created_at": now,
    }
    return insert(db, "runs", columns)


def _was_seen_to_end(db: Connection, run: Row) -> bool:
    """Whether runyard itself saw the last attempt end, and nothing has gone on since.

    `wandb sync` of what a dead program left looks like a client that starts, but has no life to
    tell of: it must not undo the end that was seen. A client that resumes names the run's key.
    """
    attempt = attempts.last(db, run["key"])
    ended = attempt is not None and attempt["exit_code"] is not None
    return ended and run["state"] not in states.ALIVE


def _find(db: Connection, message: Upsert, origin: Origin, now: float) -> Row | None:
    if message.key is not None:
        run = runs.by_key(db, message.key)
        if run is not None:
            return run
        if message.id is None:
            raise Unknown("there is no such run any more")
    if message.id is None:
        return None
    run = runs.by_path(db, message.entity, message.project, message.id)
    if run is None:
        # It was announced, and the program then names another place, or an id of its own: it is
        # that run.
        run = runs.find_announced(db, message.id, message.user) or _find_own(db, message, origin)
        if run is not None:
            project = runs.ensure_project(db, message.entity, message.project, now)
            runs.take_id(db, run, project, message.id)
    return run


def _find_own(db: Connection, message: Upsert, origin: Origin) -> Row | None:
    """The run that was announced for the program which speaks, if this is the first it begins."""
    if not message.starts_client or message.sweep is not None or origin.is_sync:
        return None
    key = api_keys.run_of(db, message.key_id) if message.key_id else None
    run = None if key is None else runs.by_key(db, key)
    if run is None or run["user"] != message.user:
        return None
    if not run["seen_client"]:
        return run
    if run["announced_id"] is not None:
        runs.update(db, run["key"], left_behind=1)
    return None
