"""Sweeps: made, found, changed, brought to their end."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any

from runyard.server.people.permissions import Entities
from runyard.server.runs import runs
from runyard.server.runs.typed_names import find_meant, in_place, of_entities
from runyard.server.store import sql
from runyard.server.store.names import new_id
from runyard.server.store.sql import Row, exists, fetch_number, fetch_one
from runyard.server.sweeps.policy.rules import Rules
from runyard.vocabulary import OPEN_STATES

GRID = "grid"
_MANY = 2**31

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
    budget: str | None = None
    size: int | None = None
    folder: str | None = None
    controller: str | None = None
    scheduler: str | None = None
    prior: tuple[int, ...] = ()
    tried: tuple[int, ...] = ()


def create(db: Connection, new: NewSweep, now: float) -> Row:
    """Store a sweep; it runs from now on, and waits for agents."""
    project = runs.ensure_project(db, new.entity, new.project, now)
    # Alone in the whole store, so that a person need not name the project.
    while exists(db, "SELECT 1 FROM sweeps WHERE id = ?", (sweep_id := new_id(),)):
        pass
    columns = {name: value for name, value in vars(new).items() if name != "entity"} | {
        "id": sweep_id,
        "project": project,
        "name": new.name or sweep_id,
        "rules": new.rules.as_json(),
        "state": "running",
        "prior": json.dumps(new.prior),
        "tried": json.dumps(sorted(new.tried)),
        "drawn": past_tried(0, new.rules.seeds, frozenset(new.tried)),
        "created_at": now,
        "updated_at": now,
    }
    return get(db, sql.insert(db, "sweeps", columns))


def by_key(db: Connection, key: int) -> Row | None:
    return fetch_one(db, _SELECT + "WHERE sweeps.key = ?", (key,))


def get(db: Connection, key: int) -> Row:
    row = by_key(db, key)
    assert row is not None
    return row


def by_path(db: Connection, entity: str, project: str, sweep: str) -> Row | None:
    """By the id that clients use."""
    return fetch_one(
        db,
        _SELECT + "WHERE projects.entity = ? AND projects.name = ? AND sweeps.id = ?",
        (entity, project, sweep),
    )


def by_words(db: Connection, words: str, entities: Entities | None = None) -> Row | None:
    """The sweep that a person means: by id, by name, or by a part of either; PROJECT/... narrows.

    Only sweeps of these entities, where some are given.
    """
    place, _, name = words.rpartition("/")
    if not name:
        return None
    places, values = in_place(place or None)
    part = "(instr(sweeps.id, ?) = 1 OR instr(lower(sweeps.name), lower(?)) > 0)"
    ways = (
        ([*places, "sweeps.id = ?"], [*values, name]),
        ([*places, "sweeps.name = ?"], [*values, name]),
        ([*places, part], [*values, name, name]),
    )
    return find_meant(db, _SELECT, "sweeps.key", ways, entities)


def newest(
    db: Connection,
    project: str | None,
    limit: int | None,
    entities: Entities | None = None,
    *,
    open_only: bool = False,
) -> list[Row]:
    """Sweeps, the newest first; only of these entities, where some are given."""
    tests, values = list[str](), list[str]()
    if open_only:
        tests.append(f"sweeps.state IN {OPEN_STATES}")
    for more, their_values in (in_place(project), of_entities(entities)):
        tests += more
        values += their_values
    return db.execute(
        f"{_SELECT} WHERE {' AND '.join(tests or '1')} ORDER BY sweeps.key DESC LIMIT ?",
        [*values, -1 if limit is None else limit],
    ).fetchall()


def of_project(db: Connection, project: int, after: int | None, most: int) -> list[Row]:
    """A project's sweeps, the newest first, behind the one of the key `after`."""
    return db.execute(
        _SELECT + "WHERE sweeps.project = ? AND sweeps.key < ? ORDER BY sweeps.key DESC LIMIT ?",
        (project, 2**62 if after is None else after, most),
    ).fetchall()


def count(db: Connection, project: int) -> int:
    return fetch_number(db, "SELECT count(*) FROM sweeps WHERE project = ?", (project,))


def update(db: Connection, /, key: int, now: float, **columns: Any) -> None:
    sql.update(db, "sweeps", {"key": key}, {"updated_at": now, **columns})


def counts(db: Connection, key: int) -> dict[str, int]:
    """How many trials are in which state; an index alone answers it."""
    return dict(
        db.execute("SELECT state, count(*) FROM trials WHERE sweep = ? GROUP BY state", (key,))
    )


def open_counts(db: Connection, key: int) -> dict[str, int]:
    """The same for those that have not ended, whose number does not grow with the sweep."""
    rows = db.execute(
        "SELECT state, count(*) FROM trials WHERE sweep = ? "
        "AND state IN ('waiting', 'running', 'paused') GROUP BY state",
        (key,),
    )
    return dict(rows)


def rules_of(row: Row) -> Rules:
    return Rules.read(row["rules"])


def whole(row: Row, rules: Rules) -> int | None:
    """How many trials there can be in all, without the cap; None: without end."""
    if row["size"] is None:
        return None
    settings: int = row["size"] - len(json.loads(row["tried"]))
    return max(settings * rules.seeds, 0)


def expected(row: Row, rules: Rules) -> int | None:
    bounds = [bound for bound in (whole(row, rules), row["run_cap"]) if bound is not None]
    return min(bounds, default=None)


def has_more(row: Row | Mapping[str, Any], rules: Rules) -> bool:
    """Whether there is a new trial to be had: neither cap, target nor the grid's end is reached."""
    if not rules.draws or row["has_target"]:
        return False
    if row["run_cap"] is not None and row["trials"] - row["removed"] >= row["run_cap"]:
        return False
    return row["size"] is None or row["drawn"] < row["size"] * rules.seeds


def room(db: Connection, row: Row, rules: Rules) -> int:
    """How many trials that wait may begin.

    Where they are drawn elsewhere, the cap is for those that finish: a failed or stopped trial is
    no result, and W&B's scheduler asks for another one.
    """
    if rules.draws or row["run_cap"] is None:
        return _MANY
    counted = counts(db, row["key"])
    left: int = row["run_cap"] - counted.get("running", 0) - counted.get("finished", 0)
    return max(0, left)


def past_tried(drawn: int, seeds: int, tried: Collection[int]) -> int:
    """The next draw from `drawn` on whose setting no prior run has done."""
    setting, seed = divmod(drawn, seeds)
    while setting in tried:
        setting, seed = setting + 1, 0
    return setting * seeds + seed
