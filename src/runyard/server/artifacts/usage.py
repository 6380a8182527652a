"""How much an entity keeps on disk."""

from __future__ import annotations

import sqlite3


def stored_bytes(connection: sqlite3.Connection, entity: str) -> int:
    """The contents of artifacts, once each, and the files of runs."""
    row = connection.execute(
        "SELECT (SELECT coalesce(sum(size), 0) FROM blobs WHERE entity = :entity) + "
        "(SELECT coalesce(sum(files.size), 0) FROM projects "
        "JOIN runs ON runs.project = projects.key JOIN files ON files.run = runs.key "
        "WHERE projects.entity = :entity)",
        {"entity": entity},
    ).fetchone()
    total: int = row[0]
    return total
