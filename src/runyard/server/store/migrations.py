"""The schema, as the list of steps that led to it. Steps are only ever added at the end."""

from __future__ import annotations

import sqlite3

from runyard.errors import StateError
from runyard.server.store.schema import (
    artifacts,
    consoles,
    contents,
    figures,
    history,
    jobs,
    people,
    processes,
    programs,
    reports,
    runs,
    sweeps,
    wishes,
)
from runyard.version import __version__

_ABOUT = "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"

# In an order in which tables refer to earlier ones only.
_FIRST = "".join(
    (
        _ABOUT,
        people.TABLES,
        runs.TABLES,
        processes.TABLES,
        consoles.TABLES,
        history.TABLES,
        artifacts.TABLES,
        contents.TABLES,
    )
)

STEPS: tuple[str, ...] = (
    _FIRST,
    sweeps.TABLES,
    jobs.TABLES,
    reports.TABLES,
    wishes.TABLES,
    processes.USAGE,
    jobs.SCRIPT,
    processes.AGENT,
    figures.TABLES,
    programs.TABLES,
    sweeps.RETURNS,
    people.INVITATIONS,
    people.KEYS,
    artifacts.LINKED_BY,
    people.SESSIONS,
)


def refuse_newer(connection: sqlite3.Connection) -> None:
    """Keep our hands off a database that a newer runyard has written; this only reads."""
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    if found <= len(STEPS):
        return
    raise StateError(
        f"the state folder was written by {_writer_of(connection)}, which is newer than this "
        f"runyard {__version__}",
        said=f"its schema is at step {found}, this one knows {len(STEPS)}",
        mend="upgrade with `pip install --upgrade runyard`, or set RUNYARD_HOME to another "
        "folder; nothing was changed",
    )


def migrate(connection: sqlite3.Connection) -> None:
    """Take the database from whatever step it is at to the last, all or nothing."""
    refuse_newer(connection)
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    if found == len(STEPS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in STEPS[found:]:
            for statement in _statements(step):
                connection.execute(statement)
        connection.execute(
            "INSERT OR REPLACE INTO about (name, value) VALUES ('version', ?)", (__version__,)
        )
        connection.execute(f"PRAGMA user_version = {len(STEPS)}")
        connection.execute("COMMIT")
    except BaseException:
        # A full disk may have ended the transaction already.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _writer_of(connection: sqlite3.Connection) -> str:
    try:
        row = connection.execute("SELECT value FROM about WHERE name = 'version'").fetchone()
    except sqlite3.OperationalError:
        row = None  # The newer one keeps it elsewhere.
    return f"runyard {row[0]}" if row else "a newer runyard"


def _statements(step: str) -> list[str]:
    # sqlite3's executescript would commit in the middle.
    statements, current = [], ""
    for line in step.splitlines():
        current += line + "\n"
        if sqlite3.complete_statement(current):
            statements.append(current)
            current = ""
    if current.strip():
        raise ValueError(f"a step's last statement has no end: {current.strip()[:60]!r}")
    return statements
