"""Artifacts: versions in the making, committed, linked and found.

A version gets its number when it is committed, so that two clients can upload at once. Contents
that the collection has already make no new version: the old one gets the aliases.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from sqlite3 import Connection
from typing import Any

from runyard.server.artifacts import aliases, blobs, collections, manifests
from runyard.server.store import sql
from runyard.server.store.sql import Row, fetch_column, fetch_number, fetch_one

PENDING, COMMITTED = "PENDING", "COMMITTED"

_SELECT = (
    "SELECT artifacts.*, memberships.version AS version, collections.name AS collection_name, "
    "collections.type AS type, collections.project AS project, projects.entity AS entity, "
    "projects.name AS project_name FROM artifacts "
    "JOIN collections ON collections.key = artifacts.collection "
    "JOIN projects ON projects.key = collections.project "
    "LEFT JOIN memberships ON memberships.artifact = artifacts.key "
    "AND memberships.collection = artifacts.collection "
)


class Unknown(LookupError):
    """There is no such version."""


class Unfinished(ValueError):
    """A version cannot be committed, or linked, as it is."""


@dataclass(frozen=True)
class NewArtifact:
    """What a client says of a version that it is about to upload."""

    project: int
    collection: str
    type: str
    digest: str
    run: int | None = None
    aliases: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    description: str | None = None
    metadata: str | None = None
    history_step: int | None = None
    ttl: int | None = None
    client_id: str | None = None
    sequence_client_id: str | None = None
    distributed_id: str | None = None


def by_key(db: Connection, key: int) -> Row | None:
    return fetch_one(
        db,
        _SELECT + "WHERE artifacts.key = "
        "(SELECT coalesce(same_as, key) FROM artifacts WHERE key = ?)",
        (key,),
    )


def by_name(
    db: Connection, entity: str, project: str, name: str, kind: str | None = None
) -> Row | None:
    """The membership that NAME, NAME:ALIAS, NAME:vN or NAME:DIGEST stands for."""
    collection_name, _, alias = name.partition(":")
    collection = collections.by_name(db, entity, project, collection_name, kind)
    if collection is None:
        return None
    return aliases.resolve(db, collection["key"], alias or aliases.LATEST)


def by_client_id(db: Connection, client_id: str) -> Row | None:
    return fetch_one(db, "SELECT artifact, collection FROM client_ids WHERE id = ?", (client_id,))


def latest(db: Connection, collection: int) -> Row | None:
    member = aliases.resolve(db, collection, aliases.LATEST)
    return None if member is None else by_key(db, member["artifact"])


def create(db: Connection, new: NewArtifact, now: float) -> Row:
    """A version to upload, or the committed one that has these contents."""
    collection = collections.ensure(db, new.project, new.collection, new.type, now)
    row = _find(db, new, collection["key"])
    if row is None:
        key = _insert(db, new, collection["key"], now)
    else:
        key = row["key"]
        if row["state"] == COMMITTED:
            aliases.give(db, collection["key"], key, new.aliases)
            if new.run is not None:
                note_run(db, new.run, key, LOGGED)
                if row["run"] is None:
                    # Pushed here before the run that made it, say.
                    update(db, key, now, run=new.run)
        else:
            names = dict.fromkeys([*json.loads(row["wanted_aliases"]), *new.aliases])
            update(db, key, now, wanted_aliases=json.dumps(list(names)))
    _remember(db, new.client_id, "artifact", key)
    _remember(db, new.sequence_client_id, "collection", collection["key"])
    return get(db, key)


def get(db: Connection, key: int) -> Row:
    row = by_key(db, key)
    if row is None:
        raise Unknown("there is no such artifact any more")
    return row


def _find(db: Connection, new: NewArtifact, collection: int) -> Row | None:
    # Asked again: the answer was lost on its way, or an offline run is synced a second time.
    known = by_client_id(db, new.client_id) if new.client_id else None
    if known is not None and known["artifact"] is not None:
        row = by_key(db, known["artifact"])
        if row is not None and row["collection"] == collection:
            return row
    if new.distributed_id is not None:
        where, value = "distributed_id = ? AND state = 'PENDING'", new.distributed_id
    else:
        where, value = "digest = ? AND state = 'COMMITTED'", new.digest
    return fetch_one(
        db,
        f"{_SELECT}WHERE artifacts.collection = ? AND artifacts.same_as IS NULL "
        f"AND artifacts.{where} ORDER BY artifacts.key DESC LIMIT 1",
        (collection, value),
    )


def _insert(db: Connection, new: NewArtifact, collection: int, now: float) -> int:
    names = ("digest", "run", "distributed_id", "description", "metadata", "history_step", "ttl")
    columns = {name: getattr(new, name) for name in names}
    columns |= {"collection": collection, "state": PENDING}
    columns |= {"tags": json.dumps(new.tags), "wanted_aliases": json.dumps(new.aliases)}
    return sql.insert(db, "artifacts", {**columns, "created_at": now, "updated_at": now})


def _remember(db: Connection, client_id: str | None, what: str, key: int) -> None:
    if client_id:
        # The first to use an id keeps it: nobody can bend another's references to a new place.
        db.execute(
            f"INSERT INTO client_ids (id, {what}) VALUES (?, ?) ON CONFLICT DO NOTHING",
            (client_id, key),
        )


def commit(db: Connection, key: int, now: float) -> Row:
    """Give a version its number, its contents and its aliases. Again, it changes nothing."""
    row = get(db, key)
    if row["state"] == COMMITTED:
        return row
    name, collection = row["collection_name"], row["collection"]
    settled = manifests.settle(db, key, now)
    if settled is None:
        raise Unfinished(f"{name} cannot be committed: its manifest has not arrived")
    manifest, is_merged = settled
    missing = blobs.first_missing(db, row["entity"], manifest)
    if missing is not None:
        raise Unfinished(
            f"{name} cannot be committed: the contents of {missing!r} have not arrived; "
            "log it again"
        )
    digest = manifests.digest_of(db, manifest) if is_merged else row["digest"]
    twin = _twin(db, collection, digest)
    stored = key if twin is None else twin["key"]
    if twin is None:
        count, size = manifests.measure(db, manifest)
        aliases.join(db, collection, key, collections.next_version(db, collection), now)
        update(
            db, key, now, state=COMMITTED, digest=digest, manifest=manifest,
            file_count=count, size=size
        )  # fmt: skip
    else:
        # Somebody committed the same while this was on its way.
        update(db, key, now, state=COMMITTED, same_as=stored)
    aliases.give(db, collection, stored, json.loads(row["wanted_aliases"]))
    if row["run"] is not None:
        note_run(db, row["run"], stored, LOGGED)
    db.execute(
        "DELETE FROM manifests WHERE artifact = ? AND key != ?",
        (key, manifest if stored == key else 0),
    )
    db.execute("DELETE FROM claims WHERE artifact = ?", (key,))
    return get(db, key)


def _twin(db: Connection, collection: int, digest: str) -> Row | None:
    return fetch_one(
        db,
        "SELECT key FROM artifacts WHERE collection = ? AND digest = ? AND state = 'COMMITTED' "
        "AND same_as IS NULL",
        (collection, digest),
    )


def link(
    db: Connection, key: int, project: int, portfolio: str, names: list[str], user: int, now: float
) -> Row:
    """Make a version a member of another collection, under aliases of its own there."""
    row = get(db, key)
    if row["state"] != COMMITTED:
        raise Unfinished(f"{row['collection_name']} cannot be linked before it is committed")
    target = collections.ensure(db, project, portfolio, row["type"], now, is_portfolio=True)["key"]
    if aliases.membership(db, target, row["key"]) is None:
        version = collections.next_version(db, target)
        aliases.join(db, target, row["key"], version, now)
    aliases.lend(db, target, row["key"], user)
    aliases.give(db, target, row["key"], [*names, aliases.LATEST])
    member = aliases.membership(db, target, row["key"])
    assert member is not None
    return member


def versions(
    db: Connection, collection: int, *, newest: bool, after: int | None, limit: int
) -> list[Row]:
    """The members of a collection, by `artifact` and `version`."""
    sign, order = ("<", "DESC") if newest else (">", "ASC")
    start = after if after is not None else 2**62 if newest else -1
    return db.execute(
        f"SELECT * FROM memberships WHERE collection = ? AND version {sign} ? "
        f"ORDER BY version {order} LIMIT ?",
        (collection, start, limit),
    ).fetchall()


def count_versions(db: Connection, collection: int) -> int:
    return fetch_number(db, "SELECT count(*) FROM memberships WHERE collection = ?", (collection,))


def update(db: Connection, key: int, now: float, **columns: Any) -> None:
    sql.update(db, "artifacts", {"key": key}, {**columns, "updated_at": now})


LOGGED, USED = "logged", "used"


def note_run(
    db: Connection, run: int, artifact: int, role: str, used_as: str | None = None
) -> None:
    db.execute(
        "INSERT INTO lineage (run, artifact, role, used_as) VALUES (?, ?, ?, ?) "
        "ON CONFLICT DO NOTHING",
        (run, artifact, role, used_as),
    )


def of_run(db: Connection, run: int, role: str, *, after: int, limit: int) -> list[Row]:
    """A run's versions in the order in which they came, by `key` and `artifact`."""
    return db.execute(
        "SELECT lineage.key, lineage.artifact FROM lineage "
        "JOIN artifacts ON artifacts.key = lineage.artifact "
        "WHERE lineage.run = ? AND lineage.role = ? AND artifacts.state = 'COMMITTED' "
        "AND lineage.key > ? ORDER BY lineage.key LIMIT ?",
        (run, role, after, limit),
    ).fetchall()


def count_of_run(db: Connection, run: int, role: str) -> int:
    return fetch_number(
        db,
        "SELECT count(*) FROM lineage JOIN artifacts ON artifacts.key = lineage.artifact "
        "WHERE lineage.run = ? AND lineage.role = ? AND artifacts.state = 'COMMITTED'",
        (run, role),
    )


def runs_of(db: Connection, artifact: int, role: str) -> list[int]:
    return fetch_column(
        db, "SELECT run FROM lineage WHERE artifact = ? AND role = ? ORDER BY key", (artifact, role)
    )
