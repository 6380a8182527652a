"""The schema, as the list of steps that led to it. Steps are only ever added at the end."""

from __future__ import annotations

import sqlite3

from runyard.errors import StateError
from runyard.version import __version__

_FIRST = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE users (
    key INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,           -- the entity of the user's own runs, too
    admin INTEGER NOT NULL DEFAULT 0,
    created_at REAL NOT NULL,
    removed_at REAL                      -- the name stays theirs
);

CREATE TABLE api_keys (
    hash TEXT PRIMARY KEY,
    user INTEGER NOT NULL REFERENCES users,
    label TEXT NOT NULL DEFAULT '',
    created_at REAL NOT NULL,
    used_at REAL
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

CREATE TABLE teams (
    name TEXT PRIMARY KEY,
    created_at REAL NOT NULL
) WITHOUT ROWID;

CREATE TABLE members (
    team TEXT NOT NULL REFERENCES teams ON DELETE CASCADE,
    user INTEGER NOT NULL REFERENCES users,
    PRIMARY KEY (team, user)
) WITHOUT ROWID;
CREATE INDEX members_by_user ON members (user);

CREATE TABLE collections (
    key INTEGER PRIMARY KEY AUTOINCREMENT,  -- ids that clients remember must not come again
    project INTEGER NOT NULL REFERENCES projects ON DELETE CASCADE,
    name TEXT NOT NULL,
    type TEXT NOT NULL,
    is_portfolio INTEGER NOT NULL DEFAULT 0, -- holds links to versions of other collections
    description TEXT,
    tags TEXT NOT NULL DEFAULT '[]',
    next_version INTEGER NOT NULL DEFAULT 0,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    UNIQUE (project, name)
);
CREATE INDEX collections_by_type ON collections (project, type);

CREATE TABLE artifacts (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    collection INTEGER NOT NULL REFERENCES collections ON DELETE CASCADE,
    state TEXT NOT NULL,                 -- PENDING, COMMITTED
    digest TEXT NOT NULL,                -- over names and digests of the contents
    same_as INTEGER REFERENCES artifacts ON DELETE CASCADE, -- found at commit to be there already
    run INTEGER REFERENCES runs ON DELETE SET NULL,         -- that made it
    distributed_id TEXT,                 -- shared by the writers of one version
    description TEXT,
    metadata TEXT,
    tags TEXT NOT NULL DEFAULT '[]',
    wanted_aliases TEXT NOT NULL DEFAULT '[]',              -- given at commit
    history_step INTEGER,
    ttl INTEGER,
    size INTEGER NOT NULL DEFAULT 0,
    file_count INTEGER NOT NULL DEFAULT 0,
    manifest INTEGER,                    -- the one that counts, from commit on
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL
);
CREATE INDEX artifacts_by_digest ON artifacts (collection, digest);
CREATE INDEX artifacts_by_run ON artifacts (run);
CREATE INDEX artifacts_by_same ON artifacts (same_as) WHERE same_as IS NOT NULL;
CREATE INDEX artifacts_pending ON artifacts (created_at) WHERE state = 'PENDING';

CREATE TABLE memberships (
    collection INTEGER NOT NULL REFERENCES collections ON DELETE CASCADE,
    artifact INTEGER NOT NULL REFERENCES artifacts ON DELETE CASCADE,
    version INTEGER NOT NULL,
    created_at REAL NOT NULL,
    PRIMARY KEY (collection, version),
    UNIQUE (artifact, collection)
) WITHOUT ROWID;

CREATE TABLE aliases (
    collection INTEGER NOT NULL REFERENCES collections ON DELETE CASCADE,
    name TEXT NOT NULL,
    artifact INTEGER NOT NULL REFERENCES artifacts ON DELETE CASCADE,
    PRIMARY KEY (collection, name)
) WITHOUT ROWID;
CREATE INDEX aliases_by_artifact ON aliases (artifact);

CREATE TABLE client_ids (
    id TEXT PRIMARY KEY,                 -- chosen by a client before it knew ours
    artifact INTEGER REFERENCES artifacts ON DELETE CASCADE,
    collection INTEGER REFERENCES collections ON DELETE CASCADE
) WITHOUT ROWID;
CREATE INDEX client_ids_by_artifact ON client_ids (artifact);
CREATE INDEX client_ids_by_collection ON client_ids (collection);

CREATE TABLE lineage (
    key INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    artifact INTEGER NOT NULL REFERENCES artifacts ON DELETE CASCADE,
    role TEXT NOT NULL,                  -- logged, used
    used_as TEXT,
    UNIQUE (run, role, artifact)
);
CREATE INDEX lineage_by_artifact ON lineage (artifact, role);

CREATE TABLE manifests (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    artifact INTEGER NOT NULL REFERENCES artifacts ON DELETE CASCADE,
    kind TEXT NOT NULL,                  -- FULL, INCREMENTAL, PATCH
    digest TEXT NOT NULL,                -- MD5 of the file to come
    base INTEGER,                        -- the artifact that an INCREMENTAL one adds to
    frame TEXT,                          -- all but the contents; null until it has arrived
    created_at REAL NOT NULL
);
CREATE INDEX manifests_by_artifact ON manifests (artifact);

CREATE TABLE entries (
    manifest INTEGER NOT NULL REFERENCES manifests ON DELETE CASCADE,
    path TEXT NOT NULL,
    digest TEXT NOT NULL,
    size INTEGER NOT NULL,
    is_stored INTEGER NOT NULL,          -- 0 for a reference
    entry TEXT NOT NULL,                 -- as it came, in JSON
    PRIMARY KEY (manifest, path)
) WITHOUT ROWID;
CREATE INDEX entries_by_digest ON entries (digest);

CREATE TABLE blobs (
    entity TEXT NOT NULL,                -- contents are shared within an entity, never beyond
    digest TEXT NOT NULL,                -- MD5 in base64
    size INTEGER NOT NULL,
    file TEXT NOT NULL UNIQUE,           -- never used again, so that removing it harms no newer one
    PRIMARY KEY (entity, digest)
) WITHOUT ROWID;

CREATE TABLE claims (
    digest TEXT NOT NULL,                -- of a blob that a version in the making needs
    artifact INTEGER NOT NULL REFERENCES artifacts ON DELETE CASCADE,
    PRIMARY KEY (digest, artifact)
) WITHOUT ROWID;
CREATE INDEX claims_by_artifact ON claims (artifact);

CREATE TABLE clients (                   -- each process that wrote to a run, or was synced into it
    run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    number INTEGER NOT NULL,
    kind TEXT NOT NULL,                  -- live, sync, shared
    writer TEXT NOT NULL DEFAULT '',     -- in shared mode: who of the many it is
    began_at REAL NOT NULL,              -- when it first spoke to us
    started_at REAL,                     -- when the process began whose data it brings
    heard_at REAL NOT NULL,
    ended_at REAL,
    exit_code INTEGER,
    archive INTEGER,                     -- what its start put aside
    history_told INTEGER NOT NULL DEFAULT 0,  -- how many rows there were, as it was told
    events_told INTEGER NOT NULL DEFAULT 0,
    history_shift INTEGER,               -- its own row numbers, plus this, are the run's
    events_shift INTEGER,
    PRIMARY KEY (run, number)
) WITHOUT ROWID;

CREATE TABLE archives (                  -- rows that a rewind or a restart took out of a run
    run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    number INTEGER NOT NULL,             -- its rows are in the streams 2n and 2n + 1
    reason TEXT NOT NULL,                -- rewound, restarted
    made_at REAL NOT NULL,
    config TEXT NOT NULL,
    summary TEXT NOT NULL,
    PRIMARY KEY (run, number)
) WITHOUT ROWID;

CREATE TABLE placements (                -- where the rows of one of several writers are
    run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    stream INTEGER NOT NULL,
    writer TEXT NOT NULL,
    start INTEGER NOT NULL,              -- row numbers of the writer's own
    stop INTEGER NOT NULL,
    place INTEGER NOT NULL,              -- the run's row that the first of them is
    PRIMARY KEY (run, stream, writer, start)
) WITHOUT ROWID;

CREATE TABLE alerts (
    key INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    title TEXT NOT NULL,
    text TEXT NOT NULL,
    level TEXT NOT NULL,
    wait_seconds REAL NOT NULL DEFAULT 0,
    raised_at REAL NOT NULL
);
CREATE INDEX alerts_by_run ON alerts (run);

CREATE TABLE resume_questions (          -- a client has asked where a run stopped, to go on there
    run INTEGER PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
    asked_at REAL NOT NULL
);

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
