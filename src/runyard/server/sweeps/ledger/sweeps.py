"""Sweeps: made, found, changed, brought to their end."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from runyard.server.people.permissions import Entities
from runyard.server.runs import runs
from runyard.server.runs.typed_names import find_meant, in_place, of_entities
from runyard.server.store import sql
from runyard.server.store.sql import Row
from runyard.server.sweeps.policy.rules import Rules
from runyard.sweep_states import OPEN_SWEEPS

OPEN = OPEN_SWEEPS
STATES = (*OPEN, "finished", "canceled", "failed")
GRID = "grid"

_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
_SELECT = (
    "SELECT sweeps.*, projects.entity AS entity, projects.name AS project_name "
    "FROM sweeps JOIN projects ON projects.key = sweeps.project "
)


@dataclass(frozen=True)
class NewSweep:
    """A sweep file that was read and found good, and where it is to live."""

    entity: str
    project: str
    user: int
    name: str | None
    description: str | None
    # As it came, and as JSON.
    text: str
    config: str
    rules: Rules
    method: str
    seed: int
    run_cap: int | None = None
    size: int | None = None
    folder: str | None = None
    controller: str | None = None
    scheduler: str | None = None
    prior: tuple[int, ...] = ()
    tried: tuple[int, ...] = ()


def create(connection: sqlite3.Connection, new: NewSweep, now: float) -> Row:
    """Store a sweep; it runs from now on, and waits for agents."""
    project = runs.ensure_project(connection, new.entity, new.project, now)
    sweep_id = _new_id(connection)
    cursor = connection.execute(
        "INSERT INTO sweeps (id, project, user, name, description, text, config, rules, method, "
        "seed, state, run_cap, size, folder, controller, scheduler, prior, tried, drawn, "
        "created_at, updated_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'running', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            sweep_id,
            project,
            new.user,
            new.name or sweep_id,
            new.description,
            new.text,
            new.config,
            new.rules.as_json(),
            new.method,
            new.seed,
            new.run_cap,
            new.size,
            new.folder,
            new.controller,
            new.scheduler,
            json.dumps(new.prior),
            json.dumps(sorted(new.tried)),
            past_tried(0, new.rules.seeds, frozenset(new.tried)),
            now,
            now,
        ),
    )
    return get(connection, cursor.lastrowid or 0)


def _new_id(connection: sqlite3.Connection) -> str:
    # Alone in the whole store, so that a person need not name the project.
    while True:
        found = "".join(secrets.choice(_ALPHABET) for _ in range(8))
        if not connection.execute("SELECT 1 FROM sweeps WHERE id = ?", (found,)).fetchone():
            return found


def by_key(connection: sqlite3.Connection, key: int) -> Row | None:
    row: Row | None = connection.execute(_SELECT + "WHERE sweeps.key = ?", (key,)).fetchone()
    return row


def get(connection: sqlite3.Connection, key: int) -> Row:
    """A sweep that is known to be there."""
    row = by_key(connection, key)
    assert row is not None
    return row


def by_path(connection: sqlite3.Connection, entity: str, project: str, sweep: str) -> Row | None:
    """By the id that clients use."""
    row: Row | None = connection.execute(
        _SELECT + "WHERE projects.entity = ? AND projects.name = ? AND sweeps.id = ?",
        (entity, project, sweep),
    ).fetchone()
    return row


def by_words(
    connection: sqlite3.Connection, words: str, entities: Entities | None = None
) -> Row | None:
    """The sweep that a person means: by id, by name, or by a part of either; PROJECT/... narrows.

    Only sweeps of these entities, where some are given.
    """
    place, _, name = words.rpartition("/")
    if not name:
        return None
    places, given = in_place(place or None)
    part = "(instr(sweeps.id, ?) = 1 OR instr(lower(sweeps.name), lower(?)) > 0)"
    ways = (
        ([*places, "sweeps.id = ?"], [*given, name]),
        ([*places, "sweeps.name = ?"], [*given, name]),
        ([*places, part], [*given, name, name]),
    )
    return find_meant(connection, _SELECT, "sweeps.key", ways, entities)


def newest(
    connection: sqlite3.Connection,
    project: str | None,
    limit: int | None,
    entities: Entities | None = None,
    *,
    open_only: bool = False,
) -> list[Row]:
    """Sweeps, the newest first; only of these entities, where some are given."""
    tests, values = list[str](), list[str]()
    if open_only:
        tests.append(f"sweeps.state IN {OPEN}")
    for more, their_values in (in_place(project), of_entities(entities)):
        tests += more
        values += their_values
    return connection.execute(
        f"{_SELECT} WHERE {' AND '.join(tests or '1')} ORDER BY sweeps.key DESC LIMIT ?",
        [*values, -1 if limit is None else limit],
    ).fetchall()


def of_project(
    connection: sqlite3.Connection, project: int, after: int | None, most: int
) -> list[Row]:
    """A project's sweeps, the newest first, behind the one of the key `after`."""
    return connection.execute(
        _SELECT + "WHERE sweeps.project = ? AND sweeps.key < ? ORDER BY sweeps.key DESC LIMIT ?",
        (project, 2**62 if after is None else after, most),
    ).fetchall()


def count(connection: sqlite3.Connection, project: int) -> int:
    found: int = connection.execute(
        "SELECT count(*) FROM sweeps WHERE project = ?", (project,)
    ).fetchone()[0]
    return found


def update(connection: sqlite3.Connection, key: int, now: float, **columns: Any) -> None:
    sql.update(connection, "sweeps", {"key": key}, {"updated_at": now, **columns})


def counts(connection: sqlite3.Connection, key: int) -> dict[str, int]:
    """How many trials are in which state; an index alone answers it."""
    found = connection.execute(
        "SELECT state, count(*) AS count FROM trials WHERE sweep = ? GROUP BY state", (key,)
    )
    return {row["state"]: row["count"] for row in found}


def open_counts(connection: sqlite3.Connection, key: int) -> dict[str, int]:
    """The same for those that have not ended, whose number does not grow with the sweep."""
    found = connection.execute(
        "SELECT state, count(*) AS count FROM trials WHERE sweep = ? "
        "AND state IN ('waiting', 'running', 'paused') GROUP BY state",
        (key,),
    )
    return {row["state"]: row["count"] for row in found}


def rules_of(row: Row) -> Rules:
    return Rules.read(row["rules"])


def whole(row: Row, rules: Rules) -> int | None:
    """How many trials there can be in all, without the cap; None: without end."""
    if row["size"] is None:
        return None
    found: int = (row["size"] - len(json.loads(row["tried"]))) * rules.seeds
    return max(found, 0)


def expected(row: Row, rules: Rules) -> int | None:
    """How many trials the sweep will have when it is over."""
    bounds = [bound for bound in (whole(row, rules), row["run_cap"]) if bound is not None]
    return min(bounds, default=None)


def has_more(row: Row | Mapping[str, Any], rules: Rules) -> bool:
    """Whether there is a new trial to be had: neither cap, target nor the grid's end is reached."""
    if not rules.draws or row["has_target"]:
        return False
    if row["run_cap"] is not None and row["trials"] - row["removed"] >= row["run_cap"]:
        return False
    return row["size"] is None or row["drawn"] < row["size"] * rules.seeds


def past_tried(drawn: int, seeds: int, tried: Collection[int]) -> int:
    """The next draw from `drawn` on whose setting no prior run has done."""
    setting, seed = divmod(drawn, seeds)
    while setting in tried:
        setting, seed = setting + 1, 0
    return setting * seeds + seed
