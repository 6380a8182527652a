"""Deletion of artifacts. `blob_files.py` removes what it frees on disk afterwards."""

from __future__ import annotations

from collections.abc import Callable
from sqlite3 import Connection

from runyard.server.artifacts import aliases, artifacts, collections, manifests
from runyard.server.store.sql import fetch_column


class Aliased(ValueError):
    """A version that has aliases is not deleted unless they may go with it."""


def delete(db: Connection, key: int, *, with_aliases: bool) -> list[tuple[str, str]]:
    """Delete a version everywhere. Answers the contents that may not be needed any more."""
    row = artifacts.get(db, key)
    held = aliases.held(db, row["collection"], row["key"])
    if held and not with_aliases:
        raise Aliased(
            f"{row['collection_name']}:v{row['version']} has the aliases {', '.join(held)}: "
            "delete it with delete_aliases=True"
        )
    freed = [(row["entity"], digest) for digest in manifests.digests(db, row["key"])]
    for member in aliases.memberships(db, row["key"]):
        aliases.leave(db, member["collection"], row["key"])
    db.execute("DELETE FROM artifacts WHERE key = ?", (row["key"],))
    return freed


def delete_made_by(
    db: Connection, run: int, may_delete: Callable[[str], bool]
) -> list[tuple[str, str]]:
    """Delete the versions that a run made, and no other run has logged too.

    `may_delete` is asked for their entities.
    """
    freed = []
    for key in made_by(db, run):
        row = artifacts.by_key(db, key)
        logged = artifacts.runs_of(db, key, artifacts.LOGGED)
        if row is not None and may_delete(row["entity"]) and set(logged) <= {run}:
            freed += delete(db, key, with_aliases=True)
    return freed


def made_by(db: Connection, run: int) -> list[int]:
    """The versions that a run made, not those that turned out to be there already."""
    return fetch_column(db, "SELECT key FROM artifacts WHERE run = ? AND same_as IS NULL", (run,))


def delete_collection(db: Connection, key: int) -> list[tuple[str, str]]:
    """Delete a collection with its versions; of links, the links alone."""
    freed = []
    for row in db.execute("SELECT key FROM artifacts WHERE collection = ?", (key,)).fetchall():
        if artifacts.by_key(db, row["key"]) is not None:
            freed += delete(db, row["key"], with_aliases=True)
    collections.delete(db, key)
    return freed


def delete_expired(db: Connection, now: float) -> list[tuple[str, str]]:
    """Delete versions whose time to live is over, counted from when they were made.

    Aliases do not protect them; a link into another collection does.
    """
    rows = db.execute(
        "SELECT key FROM artifacts WHERE ttl > 0 AND created_at + ttl < ? AND same_as IS NULL "
        "AND state = 'COMMITTED' AND NOT EXISTS (SELECT 1 FROM memberships "
        "WHERE memberships.artifact = artifacts.key "
        "AND memberships.collection != artifacts.collection)",
        (now,),
    ).fetchall()
    freed = []
    for row in rows:
        freed += delete(db, row["key"], with_aliases=True)
    return freed


def delete_abandoned(db: Connection, before: float) -> int:
    done = db.execute("DELETE FROM artifacts WHERE state = 'PENDING' AND created_at < ?", (before,))
    return done.rowcount
