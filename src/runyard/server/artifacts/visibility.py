"""Runs, collections and versions as one caller sees them: what is not theirs is not there.

Whoever loads an object for a caller loads it here, so that no field of another object leads to it.
`entities` are those that the caller may read; None means all of them.
"""

from __future__ import annotations

from sqlite3 import Connection

from runyard.server.artifacts import aliases, artifacts, collections
from runyard.server.people import permissions
from runyard.server.runs import runs
from runyard.server.store.sql import Row

Entities = permissions.Entities | None


def run(db: Connection, key: int, entities: Entities) -> Row | None:
    return _seen(runs.by_key(db, key), entities)


def collection(db: Connection, key: int, entities: Entities) -> Row | None:
    return _seen(collections.by_key(db, key), entities)


def artifact(db: Connection, key: int, entities: Entities) -> Row | None:
    """A version of the caller's own, or one that its owner has linked to a collection of theirs."""
    row = artifacts.by_key(db, key)
    if row is None or _seen(row, entities) is not None:
        return row
    linked = aliases.lent_to(db, row["key"], row["entity"])
    is_shared = any(collection(db, each, entities) is not None for each in linked)
    return row if is_shared else None


def latest(db: Connection, key: int, entities: Entities) -> Row | None:
    row = artifacts.latest(db, key)
    return None if row is None else artifact(db, row["key"], entities)


def _seen(row: Row | None, entities: Entities) -> Row | None:
    return row if row is None or entities is None or row["entity"] in entities else None
