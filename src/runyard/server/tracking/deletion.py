"""Runs that go for good, and the mark that they leave.

The mark tells a client that still writes to a deleted run that it may stop, and keeps what it says
late from bringing the run back.
"""

from __future__ import annotations

from sqlite3 import Connection

from runyard.server.runs import runs
from runyard.server.store.sql import Row
from runyard.server.store.store import Slice, Transfer
from runyard.server.sweeps.ledger import settling

# Of which a run may have so much that deleting it at once would hold up everybody; and how many
# rows of it go at a time.
_LARGE_TABLES = {"series": 20, "batches": 100, "console": 20, "lines": 100}


class Empty(Transfer):
    """Removes what a run logged and printed. The run is deleted next."""

    def __init__(self, run: int) -> None:
        self._run = run
        self._tables = list(_LARGE_TABLES)

    def plan(self, db: Connection) -> Slice | None:
        while self._tables:
            question = f"SELECT 1 FROM {self._tables[0]} WHERE run = ? LIMIT 1"
            if db.execute(question, (self._run,)).fetchone() is not None:
                return self._delete_some
            del self._tables[0]
        return None

    def _delete_some(self, db: Connection) -> None:
        table = self._tables[0]
        db.execute(
            f"DELETE FROM {table} WHERE rowid IN "
            f"(SELECT rowid FROM {table} WHERE run = ? LIMIT {_LARGE_TABLES[table]})",
            (self._run,),
        )


def delete_run(db: Connection, key: int, now: float) -> bool:
    """Remove a run with its history, console and the list of its files. Says whether it was there.

    The files themselves go after the commit; where that is cut short, at the next start.
    """
    row = runs.by_key(db, key)
    if row is not None:
        mark(db, row, now)
        if row["sweep"] is not None:
            settling.forget(db, row, now)
    # Whatever belongs to it goes with it: every table that names a run says so. A run in the trash
    # has its mark already.
    return db.execute("DELETE FROM runs WHERE key = ?", (key,)).rowcount > 0


def mark(db: Connection, row: Row, now: float) -> None:
    db.execute(
        "INSERT OR REPLACE INTO deleted_runs (entity, project, id, deleted_at) VALUES (?, ?, ?, ?)",
        (row["entity"], row["project_name"], row["id"], now),
    )


def unmark(db: Connection, entity: str, project: str, run_id: str) -> None:
    db.execute(
        "DELETE FROM deleted_runs WHERE entity = ? AND project = ? AND id = ?",
        (entity, project, run_id),
    )


def is_deleted(db: Connection, entity: str, project: str, run_id: str) -> bool:
    """Whether a run of that name was deleted, and none has come since."""
    mark = db.execute(
        "SELECT 1 FROM deleted_runs WHERE entity = ? AND project = ? AND id = ?",
        (entity, project, run_id),
    ).fetchone()
    return mark is not None and runs.by_path(db, entity, project, run_id) is None


def all_keys(db: Connection) -> set[int]:
    return {row[0] for row in db.execute("SELECT key FROM runs")}
