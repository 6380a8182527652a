"""Projects: found, listed, made."""

from __future__ import annotations

from collections.abc import Container
from sqlite3 import Connection

from runyard.server.runs import runs
from runyard.server.store.sql import Row, fetch_one


def by_path(db: Connection, entity: str, name: str) -> Row | None:
    question = f"SELECT * FROM projects WHERE entity = ? AND name = ? AND {runs.NOT_TRASH}"
    return fetch_one(db, question, (entity, name))


def by_key(db: Connection, number: str) -> Row | None:
    """By the number that clients know as its internal id."""
    if not number.isdecimal() or len(number) > 18:
        return None
    question = f"SELECT * FROM projects WHERE key = ? AND {runs.NOT_TRASH}"
    return fetch_one(db, question, (int(number),))


def of_entity(db: Connection, entity: str, after: str | None, most: int) -> list[Row]:
    """By name, behind the name `after`."""
    return db.execute(
        f"SELECT * FROM projects WHERE entity = ? AND name > ? AND {runs.NOT_TRASH} "
        "ORDER BY name LIMIT ?",
        (entity, after or "", most),
    ).fetchall()


def ensure(db: Connection, entity: str, name: str, now: float) -> tuple[Row, bool]:
    """A project of that name, and whether it was made now."""
    is_new = by_path(db, entity, name) is None
    row = by_key(db, str(runs.ensure_project(db, entity, name, now)))
    assert row is not None
    return row, is_new


def keys_of_entities(db: Connection, entities: Container[str] | None) -> frozenset[int]:
    rows = db.execute("SELECT key, entity FROM projects")
    return frozenset(row["key"] for row in rows if entities is None or row["entity"] in entities)
