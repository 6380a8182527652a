"""Aliases: names of which each belongs to one version of a collection; and the versions' numbers.

A version is in the collection that it was logged to, and in every one that it was linked to. In
each it has a number and aliases of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from sqlite3 import Connection

from runyard.server.store.names import BadName
from runyard.server.store.sql import Row, fetch_column, fetch_one
from runyard.vocabulary import LONGEST_NAME

LATEST = "latest"
_VERSION = re.compile(r"v(\d{1,18})")


def check_alias(name: str) -> None:
    is_plain = 0 < len(name) <= LONGEST_NAME and name.isprintable() and not set(name) & set("/:")
    if not is_plain or _VERSION.fullmatch(name):
        raise BadName(
            f"{name[:200]!r} cannot be an alias: it is empty, too long, a version's number, or "
            "holds one of /:"
        )


def join(db: Connection, collection: int, artifact: int, version: int, now: float) -> None:
    db.execute(
        "INSERT INTO memberships (collection, artifact, version, created_at) VALUES (?, ?, ?, ?)",
        (collection, artifact, version, now),
    )


def lend(db: Connection, collection: int, artifact: int, user: int) -> None:
    """Note who has made a version a member of a collection."""
    db.execute(
        "UPDATE memberships SET linked_by = ? WHERE collection = ? AND artifact = ?",
        (user, collection, artifact),
    )


def lent_to(db: Connection, artifact: int, entity: str) -> list[int]:
    """The collections by which others see a version of this entity.

    A link lends as long as whoever made it has the version: a member who leaves the team takes
    none of its versions along.
    """
    return fetch_column(
        db,
        "SELECT collection FROM memberships WHERE artifact = :artifact AND (linked_by IS NULL "
        "OR EXISTS (SELECT 1 FROM users WHERE users.key = linked_by AND (users.name = :entity "
        "OR EXISTS (SELECT 1 FROM members WHERE user = users.key AND team = :entity) "
        # What nobody owns is the admin's.
        "OR users.admin AND :entity NOT IN "
        "(SELECT name FROM users UNION SELECT name FROM teams))))",
        {"artifact": artifact, "entity": entity},
    )


def membership(db: Connection, collection: int, artifact: int) -> Row | None:
    return fetch_one(
        db,
        "SELECT * FROM memberships WHERE artifact = ? AND collection = ?",
        (artifact, collection),
    )


def memberships(db: Connection, artifact: int) -> list[Row]:
    """Every collection that a version is in, its own first."""
    return db.execute(
        "SELECT memberships.* FROM memberships WHERE artifact = ? ORDER BY created_at, collection",
        (artifact,),
    ).fetchall()


def resolve(db: Connection, collection: int, name: str) -> Row | None:
    """The version that `name` stands for: its number, an alias, or the digest of its contents."""
    version = _VERSION.fullmatch(name)
    if version:
        question = "SELECT * FROM memberships WHERE collection = ? AND version = ?"
        return fetch_one(db, question, (collection, int(version[1])))
    row: Row | None = db.execute(
        "SELECT memberships.* FROM aliases JOIN memberships "
        "ON memberships.artifact = aliases.artifact "
        "AND memberships.collection = aliases.collection "
        "WHERE aliases.collection = ? AND aliases.name = ?",
        (collection, name),
    ).fetchone()
    return row or fetch_one(
        db,
        "SELECT memberships.* FROM memberships "
        "JOIN artifacts ON artifacts.key = memberships.artifact "
        "WHERE memberships.collection = ? AND artifacts.digest = ? ORDER BY version DESC LIMIT 1",
        (collection, name),
    )


def give(db: Connection, collection: int, artifact: int, names: Iterable[str]) -> None:
    """Give aliases to a version; whichever had one of them before loses it."""
    db.executemany(
        "INSERT INTO aliases (collection, name, artifact) VALUES (?, ?, ?) "
        "ON CONFLICT (collection, name) DO UPDATE SET artifact = excluded.artifact",
        [(collection, name, artifact) for name in names],
    )


def take(db: Connection, collection: int, artifact: int, names: Iterable[str]) -> None:
    db.executemany(
        "DELETE FROM aliases WHERE collection = ? AND name = ? AND artifact = ?",
        [(collection, name, artifact) for name in names],
    )


def held(db: Connection, collection: int, artifact: int) -> list[str]:
    return fetch_column(
        db,
        "SELECT name FROM aliases WHERE artifact = ? AND collection = ? ORDER BY name",
        (artifact, collection),
    )


def in_collection(db: Connection, collection: int) -> list[str]:
    return fetch_column(
        db, "SELECT name FROM aliases WHERE collection = ? ORDER BY name", (collection,)
    )


def leave(db: Connection, collection: int, artifact: int) -> None:
    """Take a version out of a collection. The newest that is left is then the latest."""
    was_latest = LATEST in held(db, collection, artifact)
    db.execute("DELETE FROM aliases WHERE artifact = ? AND collection = ?", (artifact, collection))
    db.execute(
        "DELETE FROM memberships WHERE artifact = ? AND collection = ?", (artifact, collection)
    )
    if was_latest:
        db.execute(
            "INSERT INTO aliases (collection, name, artifact) "
            "SELECT collection, ?, artifact FROM memberships WHERE collection = ? "
            "ORDER BY version DESC LIMIT 1",
            (LATEST, collection),
        )
