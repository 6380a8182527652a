"""Jobs that somebody wants cancelled: remembered until a command on the login node does it."""

from __future__ import annotations

from sqlite3 import Connection

from runyard.server.store.sql import Row

CANCEL = "cancel"
WISHES = (CANCEL,)


def make(db: Connection, key: int, wish: str | None) -> None:
    """Wish something of a job, or take a wish back."""
    db.execute("UPDATE jobs SET wish = ? WHERE key = ?", (wish, key))


def is_unwanted(db: Connection, agent: Row) -> bool:
    """Whether an agent is in a job that is to be cancelled: it begins nothing more there."""
    job = (agent["job"] or "").partition("_")[0]
    if not job:
        return False
    found = db.execute(
        "SELECT 1 FROM jobs WHERE job_id = ? AND wish = ? AND ended_at IS NULL "
        # Whoever records a job chooses its number: it ends nobody else's agents.
        "AND (sweep IS NULL OR sweep = ?) AND user = ? LIMIT 1",
        (job, CANCEL, agent["sweep"], agent["user"]),
    ).fetchone()
    return found is not None


def count(db: Connection) -> int:
    """How many wishes are open: mostly none, and then no claim need look."""
    found: int = db.execute(
        "SELECT count(*) FROM jobs WHERE wish IS NOT NULL AND ended_at IS NULL"
    ).fetchone()[0]
    return found
