"""Which contents are here, who needs them, and which nobody does any more."""

from __future__ import annotations

import json
from collections.abc import Sequence
from sqlite3 import Connection

from runyard.server.store.sql import Row, fetch_number, fetch_one

_STORED_IN = (
    "SELECT 1 FROM entries JOIN manifests ON manifests.key = entries.manifest "
    "JOIN artifacts ON artifacts.key = manifests.artifact "
    "JOIN collections ON collections.key = artifacts.collection "
    "JOIN projects ON projects.key = collections.project "
    "WHERE entries.digest = blobs.digest AND entries.is_stored AND projects.entity = blobs.entity"
)
_CLAIMED_BY = (
    "SELECT 1 FROM claims JOIN artifacts ON artifacts.key = claims.artifact "
    "JOIN collections ON collections.key = artifacts.collection "
    "JOIN projects ON projects.key = collections.project "
    "WHERE claims.digest = blobs.digest AND projects.entity = blobs.entity"
)


def claim(db: Connection, entity: str, needed: Sequence[tuple[int, str]]) -> set[str]:
    """Note which contents versions in the making need; answers those that are here already.

    From here on they stay, even if the version that brought them is deleted.
    """
    db.executemany(
        "INSERT INTO claims (artifact, digest) VALUES (?, ?) ON CONFLICT DO NOTHING", needed
    )
    return {digest for _, digest in needed if find(db, entity, digest) is not None}


def find(db: Connection, entity: str, digest: str) -> Row | None:
    return fetch_one(db, "SELECT * FROM blobs WHERE entity = ? AND digest = ?", (entity, digest))


def add(db: Connection, entity: str, digest: str, size: int, file: str) -> bool:
    """Record contents that lie in `file`. Says no if another file has them already."""
    done = db.execute(
        "INSERT INTO blobs (entity, digest, size, file) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (entity, digest, size, file),
    )
    return done.rowcount > 0


def first_missing(db: Connection, entity: str, manifest: int) -> str | None:
    """The path of a file whose contents never arrived."""
    row = db.execute(
        "SELECT path FROM entries WHERE manifest = ? AND is_stored AND NOT EXISTS "
        "(SELECT 1 FROM blobs WHERE blobs.entity = ? AND blobs.digest = entries.digest) LIMIT 1",
        (manifest, entity),
    ).fetchone()
    return None if row is None else row["path"]


def after(db: Connection, entity: str, digest: str, limit: int) -> list[tuple[str, str]]:
    """The contents that follow in order of entity and digest."""
    rows = db.execute(
        "SELECT entity, digest FROM blobs WHERE (entity, digest) > (?, ?) "
        "ORDER BY entity, digest LIMIT ?",
        (entity, digest, limit),
    )
    return [(row["entity"], row["digest"]) for row in rows]


def forget_unneeded(db: Connection, candidates: Sequence[tuple[str, str]]) -> list[str]:
    """Forget those contents that nothing refers to; answers their files, for removal."""
    files = []
    for entity, digest in candidates:
        row = db.execute(
            "SELECT file FROM blobs WHERE entity = ? AND digest = ? "
            f"AND NOT EXISTS ({_STORED_IN}) AND NOT EXISTS ({_CLAIMED_BY})",
            (entity, digest),
        ).fetchone()
        if row is not None:
            db.execute("DELETE FROM blobs WHERE entity = ? AND digest = ?", (entity, digest))
            files.append(row["file"])
    return files


def known_files(db: Connection, files: Sequence[str]) -> set[str]:
    """Those of the named files that hold contents."""
    rows = db.execute(
        "SELECT file FROM blobs WHERE file IN (SELECT value FROM json_each(?))",
        (json.dumps(files),),
    )
    return {row["file"] for row in rows}


def stored_bytes(db: Connection, entity: str) -> int:
    """How much an entity keeps on disk: artifacts' contents, once each, and files of runs."""
    return fetch_number(
        db,
        "SELECT (SELECT coalesce(sum(size), 0) FROM blobs WHERE entity = :entity) + "
        "(SELECT coalesce(sum(files.size), 0) FROM projects "
        "JOIN runs ON runs.project = projects.key JOIN files ON files.run = runs.key "
        "WHERE projects.entity = :entity)",
        {"entity": entity},
    )
