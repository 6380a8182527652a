"""Projects: found, listed, made."""

from __future__ import annotations

import sqlite3
from collections.abc import Container

from runyard.server.runs import runs
from runyard.server.store.sql import Row


def by_path(connection: sqlite3.Connection, entity: str, name: str) -> Row | None:
    row: Row | None = connection.execute(
        "SELECT * FROM projects WHERE entity = ? AND name = ?", (entity, name)
    ).fetchone()
    return row


def by_key(connection: sqlite3.Connection, number: str) -> Row | None:
    """By the number that clients know as its internal id."""
    if not number.isdecimal() or len(number) > 18:
        return None
    row: Row | None = connection.execute(
        "SELECT * FROM projects WHERE key = ?", (int(number),)
    ).fetchone()
    return row


def of_entity(
    connection: sqlite3.Connection, entity: str, after: str | None, most: int
) -> list[Row]:
    """By name, behind the name `after`."""
    return connection.execute(
        "SELECT * FROM projects WHERE entity = ? AND name > ? ORDER BY name LIMIT ?",
        (entity, after or "", most),
    ).fetchall()


def ensure(connection: sqlite3.Connection, entity: str, name: str, now: float) -> tuple[Row, bool]:
    """A project of that name, and whether it was made now."""
    is_new = by_path(connection, entity, name) is None
    runs.ensure_project(connection, entity, name, now)
    row = by_path(connection, entity, name)
    assert row is not None
    return row, is_new


def keys_of_entities(
    connection: sqlite3.Connection, entities: Container[str] | None
) -> frozenset[int]:
    """The projects of these entities; None is all of them."""
    rows = connection.execute("SELECT key, entity FROM projects")
    return frozenset(row["key"] for row in rows if entities is None or row["entity"] in entities)
