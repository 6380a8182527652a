"""Which run made which version, and which runs used it."""

from __future__ import annotations

from sqlite3 import Connection

from runyard.server.store.sql import Row

LOGGED, USED = "logged", "used"


def note(db: Connection, run: int, artifact: int, role: str, used_as: str | None = None) -> None:
    db.execute(
        "INSERT INTO lineage (run, artifact, role, used_as) VALUES (?, ?, ?, ?) "
        "ON CONFLICT DO NOTHING",
        (run, artifact, role, used_as),
    )


def artifacts_of(db: Connection, run: int, role: str, *, after: int, limit: int) -> list[Row]:
    """A run's versions in the order in which they came, by `key` and `artifact`."""
    return db.execute(
        "SELECT lineage.key, lineage.artifact FROM lineage "
        "JOIN artifacts ON artifacts.key = lineage.artifact "
        "WHERE lineage.run = ? AND lineage.role = ? AND artifacts.state = 'COMMITTED' "
        "AND lineage.key > ? ORDER BY lineage.key LIMIT ?",
        (run, role, after, limit),
    ).fetchall()


def count_of(db: Connection, run: int, role: str) -> int:
    found: int = db.execute(
        "SELECT count(*) FROM lineage JOIN artifacts ON artifacts.key = lineage.artifact "
        "WHERE lineage.run = ? AND lineage.role = ? AND artifacts.state = 'COMMITTED'",
        (run, role),
    ).fetchone()[0]
    return found


def runs_of(db: Connection, artifact: int, role: str) -> list[int]:
    rows = db.execute(
        "SELECT run FROM lineage WHERE artifact = ? AND role = ? ORDER BY key", (artifact, role)
    )
    return [row["run"] for row in rows]
