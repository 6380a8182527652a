"""The schema, as the list of steps that led to it. Steps are only ever added at the end."""

from __future__ import annotations

import sqlite3

from runyard.errors import StateError
from runyard.server.store.schema import (
    artifact_tables,
    history_tables,
    job_tables,
    people_tables,
    process_tables,
    run_tables,
    sweep_tables,
)
from runyard.version import __version__

_ABOUT = "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"

# In an order in which tables refer to earlier ones only.
_FIRST = "".join(
    (
        _ABOUT,
        people_tables.TABLES,
        run_tables.TABLES,
        process_tables.TABLES,
        process_tables.CONSOLES,
        history_tables.TABLES,
        artifact_tables.TABLES,
        artifact_tables.CONTENTS,
    )
)

STEPS: tuple[str, ...] = (
    _FIRST,
    sweep_tables.TABLES,
    job_tables.TABLES,
    run_tables.REPORTS,
    job_tables.WISH,
    process_tables.USAGE,
    job_tables.SCRIPT,
    process_tables.AGENT,
    job_tables.FIGURES,
    sweep_tables.PROGRAMS,
    sweep_tables.RETURNS,
    people_tables.INVITATIONS,
    people_tables.KEYS,
    artifact_tables.LINKED_BY,
    people_tables.SESSIONS,
    run_tables.TRASH,
    people_tables.KEY_STARTS,
    sweep_tables.PACKING,
    run_tables.COUNTED,
    process_tables.UNHEARD,
    people_tables.SERVICE,
    run_tables.CHARTS,
    run_tables.LISTED,
    sweep_tables.BUDGETS,
    sweep_tables.CHANCES,
    run_tables.NAMED,
    run_tables.COUNTED_ALIVE,
    sweep_tables.KEPT,
    process_tables.CAME_WITH,
    sweep_tables.REWOUND,
)


def refuse_newer(connection: sqlite3.Connection) -> None:
    """Keep our hands off a database that a newer runyard has written; this only reads."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version <= len(STEPS):
        return
    raise StateError(
        f"the state folder was written by {_writer_of(connection)}, which is newer than this "
        f"runyard {__version__}",
        said=f"its schema is at step {version}, this one knows {len(STEPS)}",
        mend="upgrade with `pip install --upgrade runyard`, or set RUNYARD_HOME to another "
        "folder; nothing was changed",
    )


def migrate(connection: sqlite3.Connection) -> None:
    """Take the database from whatever step it is at to the last, all or nothing."""
    refuse_newer(connection)
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version == len(STEPS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in STEPS[version:]:
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
