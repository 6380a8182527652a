"""Aliases: names of which each belongs to one version of a collection; and the versions' numbers.

A version is in the collection that it was logged to, and in every one that it was linked to. In
each it has a number and aliases of its own.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable

from runyard.server.store.names import BadName
from runyard.server.store.sql import Row

LATEST = "latest"
_LONGEST = 128
_VERSION = re.compile(r"v(\d{1,18})")


def check_alias(name: str) -> None:
    if (
        not 0 < len(name) <= _LONGEST
        or not name.isprintable()
        or set(name) & set("/:")
        or _VERSION.fullmatch(name)
    ):
        raise BadName(
            f"{name[:200]!r} cannot be an alias: it is empty, too long, a version's number, or "
            "holds one of /:"
        )


def join(
    connection: sqlite3.Connection, collection: int, artifact: int, version: int, now: float
) -> None:
    connection.execute(
        "INSERT INTO memberships (collection, artifact, version, created_at) VALUES (?, ?, ?, ?)",
        (collection, artifact, version, now),
    )


def lend(connection: sqlite3.Connection, collection: int, artifact: int, user: int) -> None:
    """Note who has made a version a member of a collection."""
    connection.execute(
        "UPDATE memberships SET linked_by = ? WHERE collection = ? AND artifact = ?",
        (user, collection, artifact),
    )


def lent_to(connection: sqlite3.Connection, artifact: int, entity: str) -> list[int]:
    """The collections by which others see a version of this entity.

    A link lends as long as whoever made it has the version: a member who leaves the team takes
    none of its versions along.
    """
    rows = connection.execute(
        "SELECT collection FROM memberships WHERE artifact = :artifact AND (linked_by IS NULL "
        "OR EXISTS (SELECT 1 FROM users WHERE users.key = linked_by AND (users.name = :entity "
        "OR EXISTS (SELECT 1 FROM members WHERE user = users.key AND team = :entity) "
        # What nobody owns is the admin's.
        "OR users.admin AND :entity NOT IN "
        "(SELECT name FROM users UNION SELECT name FROM teams))))",
        {"artifact": artifact, "entity": entity},
    )
    return [row["collection"] for row in rows]


def membership(connection: sqlite3.Connection, collection: int, artifact: int) -> Row | None:
    row: Row | None = connection.execute(
        "SELECT * FROM memberships WHERE artifact = ? AND collection = ?", (artifact, collection)
    ).fetchone()
    return row


def memberships(connection: sqlite3.Connection, artifact: int) -> list[Row]:
    """Every collection that a version is in, its own first."""
    return connection.execute(
        "SELECT memberships.* FROM memberships WHERE artifact = ? ORDER BY created_at, collection",
        (artifact,),
    ).fetchall()


def resolve(connection: sqlite3.Connection, collection: int, name: str) -> Row | None:
    """The version that `name` stands for: its number, an alias, or the digest of its contents."""
    version = _VERSION.fullmatch(name)
    row: Row | None
    if version:
        row = connection.execute(
            "SELECT * FROM memberships WHERE collection = ? AND version = ?",
            (collection, int(version[1])),
        ).fetchone()
        return row
    row = connection.execute(
        "SELECT memberships.* FROM aliases JOIN memberships "
        "ON memberships.artifact = aliases.artifact "
        "AND memberships.collection = aliases.collection "
        "WHERE aliases.collection = ? AND aliases.name = ?",
        (collection, name),
    ).fetchone()
    if row is None:
        row = connection.execute(
            "SELECT memberships.* FROM memberships "
            "JOIN artifacts ON artifacts.key = memberships.artifact "
            "WHERE memberships.collection = ? AND artifacts.digest = ? "
            "ORDER BY version DESC LIMIT 1",
            (collection, name),
        ).fetchone()
    return row


def give(
    connection: sqlite3.Connection, collection: int, artifact: int, names: Iterable[str]
) -> None:
    """Give aliases to a version; whichever had one of them before loses it."""
    connection.executemany(
        "INSERT INTO aliases (collection, name, artifact) VALUES (?, ?, ?) "
        "ON CONFLICT (collection, name) DO UPDATE SET artifact = excluded.artifact",
        [(collection, name, artifact) for name in names],
    )


def take(
    connection: sqlite3.Connection, collection: int, artifact: int, names: Iterable[str]
) -> None:
    connection.executemany(
        "DELETE FROM aliases WHERE collection = ? AND name = ? AND artifact = ?",
        [(collection, name, artifact) for name in names],
    )


def held(connection: sqlite3.Connection, collection: int, artifact: int) -> list[str]:
    rows = connection.execute(
        "SELECT name FROM aliases WHERE artifact = ? AND collection = ? ORDER BY name",
        (artifact, collection),
    )
    return [row["name"] for row in rows]


def in_collection(connection: sqlite3.Connection, collection: int) -> list[str]:
    rows = connection.execute(
        "SELECT name FROM aliases WHERE collection = ? ORDER BY name", (collection,)
    )
    return [row["name"] for row in rows]


def leave(connection: sqlite3.Connection, collection: int, artifact: int) -> None:
    """Take a version out of a collection. The newest that is left is then the latest."""
    was_latest = LATEST in held(connection, collection, artifact)
    connection.execute(
        "DELETE FROM aliases WHERE artifact = ? AND collection = ?", (artifact, collection)
    )
    connection.execute(
        "DELETE FROM memberships WHERE artifact = ? AND collection = ?", (artifact, collection)
    )
    if was_latest:
        connection.execute(
            "INSERT INTO aliases (collection, name, artifact) "
            "SELECT collection, ?, artifact FROM memberships WHERE collection = ? "
            "ORDER BY version DESC LIMIT 1",
            (LATEST, collection),
        )
