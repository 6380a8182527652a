"""The schema, as the list of steps that led to it. Steps are only ever added at the end."""

from __future__ import annotations

import sqlite3

from runyard import __version__
from runyard.errors import StateError

_FIRST = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE users (
    key INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    created_at REAL NOT NULL
);

CREATE TABLE api_keys (
    hash TEXT PRIMARY KEY,
    user INTEGER NOT NULL REFERENCES users,
    created_at REAL NOT NULL
) WITHOUT ROWID;

CREATE TABLE projects (
    key INTEGER PRIMARY KEY,
    entity TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at REAL NOT NULL,
    UNIQUE (entity, name)
);

CREATE TABLE runs (
    key INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used again: clients hold on to keys
    id TEXT NOT NULL,                    -- the name that people and the client use
    project INTEGER NOT NULL REFERENCES projects,
    user INTEGER NOT NULL REFERENCES users,
    name TEXT NOT NULL,                  -- the display name
    state TEXT NOT NULL,
    seen_client INTEGER NOT NULL DEFAULT 0,  -- whether a wandb client has written to it
    preempting INTEGER NOT NULL DEFAULT 0,
    exit_code INTEGER,
    config TEXT NOT NULL DEFAULT '{}',
    summary TEXT NOT NULL DEFAULT '{}',
    tags TEXT NOT NULL DEFAULT '[]',
    notes TEXT,
    "group" TEXT,
    job_type TEXT,
    sweep TEXT,
    host TEXT,
    program TEXT,
    commit_hash TEXT,
    repo TEXT,
    command TEXT,
    folder TEXT,
    created_at REAL NOT NULL,
    started_at REAL,
    heartbeat_at REAL,
    ended_at REAL,
    UNIQUE (project, id)
);
CREATE INDEX runs_by_id ON runs (id);
CREATE INDEX runs_by_name ON runs (name);
CREATE INDEX runs_by_creation ON runs (created_at);
CREATE INDEX runs_alive ON runs (heartbeat_at) WHERE state IN ('running', 'preempting');

CREATE TABLE attempts (
    run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    number INTEGER NOT NULL,
    token TEXT NOT NULL,                 -- chosen by the starter: a repeated call finds its attempt
    host TEXT NOT NULL,
    pid INTEGER,
    started_at REAL NOT NULL,
    ended_at REAL,
    exit_code INTEGER,
    cause TEXT,
    console_bytes INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (run, number),
    UNIQUE (run, token)
);

CREATE TABLE console (
    run INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    start INTEGER NOT NULL,              -- byte offset
    data BLOB NOT NULL,
    PRIMARY KEY (run, attempt, start),
    FOREIGN KEY (run, attempt) REFERENCES attempts (run, number) ON DELETE CASCADE
);

CREATE TABLE lines (
    run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    stream TEXT NOT NULL,                -- output: the client's console
    start INTEGER NOT NULL,              -- line offset
    stop INTEGER NOT NULL,
    data BLOB NOT NULL,                  -- compressed, a line a line
    PRIMARY KEY (run, stream, start)
);

CREATE TABLE keys (
    key INTEGER PRIMARY KEY,
    name BLOB NOT NULL UNIQUE            -- of a metric; nested parts joined
);

CREATE TABLE batches (
    run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    stream INTEGER NOT NULL,             -- history or events
    start INTEGER NOT NULL,              -- row number
    stop INTEGER NOT NULL,
    data BLOB NOT NULL,                  -- columns
    PRIMARY KEY (run, stream, start)
);

CREATE TABLE segments (
    run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    stream INTEGER NOT NULL,
    start INTEGER NOT NULL,
    stop INTEGER NOT NULL,
    PRIMARY KEY (run, stream, start)
) WITHOUT ROWID;

CREATE TABLE series (
    run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    stream INTEGER NOT NULL,
    key INTEGER NOT NULL REFERENCES keys,
    level INTEGER NOT NULL,              -- 0: every value; 1, 2: coarser, for drawing
    start INTEGER NOT NULL,              -- of the segment
    kind INTEGER NOT NULL,
    count INTEGER NOT NULL,
    lines BLOB,
    data BLOB NOT NULL,
    PRIMARY KEY (run, stream, key, level, start, kind)
);
CREATE INDEX series_by_segment ON series (run, stream, start);

CREATE TABLE files (
    run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    name TEXT NOT NULL,
    size INTEGER NOT NULL,
    updated_at REAL NOT NULL,
    PRIMARY KEY (run, name)
) WITHOUT ROWID;

ALTER TABLE files ADD COLUMN md5 TEXT;   -- in base64, as clients compare it

ALTER TABLE runs ADD COLUMN stop_asked INTEGER NOT NULL DEFAULT 0;
CREATE INDEX runs_by_project ON runs (project, created_at);

CREATE TABLE deleted_runs (
    entity TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    deleted_at REAL NOT NULL,
    PRIMARY KEY (entity, project, id)
) WITHOUT ROWID;

CREATE TABLE revisions (
    run INTEGER PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
    number INTEGER NOT NULL              -- rises whenever the run's config or summary changes
);
CREATE TRIGGER runs_revised AFTER UPDATE OF config, summary ON runs
BEGIN
    INSERT INTO revisions (run, number) VALUES (NEW.key, 1)
    ON CONFLICT (run) DO UPDATE SET number = number + 1;
END;
"""

STEPS: tuple[str, ...] = (_FIRST,)


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
