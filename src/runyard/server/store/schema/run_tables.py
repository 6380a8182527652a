"""Runs: what they are, who executes them, and what they leave but rows."""

TABLES = """
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
    stop_asked INTEGER NOT NULL DEFAULT 0,
    UNIQUE (project, id)
);
CREATE INDEX runs_by_id ON runs (id);
CREATE INDEX runs_by_name ON runs (name);
CREATE INDEX runs_by_creation ON runs (created_at);
CREATE INDEX runs_by_project ON runs (project, created_at);
CREATE INDEX runs_alive ON runs (heartbeat_at) WHERE state IN ('running', 'preempting');

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

CREATE TABLE files (
    run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    name TEXT NOT NULL,
    size INTEGER NOT NULL,
    updated_at REAL NOT NULL,
    md5 TEXT,                            -- in base64, as clients compare it
    PRIMARY KEY (run, name)
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
"""

# Deleted runs that can be restored: where each was, who deleted it and when.
TRASH = """
CREATE TABLE trash (
    run INTEGER PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
    project INTEGER NOT NULL REFERENCES projects,
    id TEXT NOT NULL,
    user INTEGER NOT NULL REFERENCES users,
    deleted_at REAL NOT NULL
);
CREATE INDEX trash_by_time ON trash (deleted_at);
"""

# Views that people keep, with their notes.
REPORTS = """
CREATE TABLE reports (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,             -- eight characters, the end of its link
    project INTEGER NOT NULL REFERENCES projects ON DELETE CASCADE,
    user INTEGER NOT NULL REFERENCES users,
    title TEXT NOT NULL,
    notes TEXT NOT NULL DEFAULT '',      -- Markdown
    view TEXT NOT NULL DEFAULT '{}',     -- what the page shows, JSON; the page's own business
    revision INTEGER NOT NULL DEFAULT 1, -- who saves an older one is told that it has changed
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL
);
CREATE INDEX reports_by_project ON reports (project, updated_at);
"""

# Charts that people define, for tables.
CHARTS = """
CREATE TABLE custom_charts (
    entity TEXT NOT NULL,
    name TEXT NOT NULL,
    title TEXT NOT NULL,
    access TEXT NOT NULL,                -- PRIVATE or PUBLIC
    spec TEXT NOT NULL,                  -- of Vega or Vega-Lite, JSON
    created_at REAL NOT NULL,
    PRIMARY KEY (entity, name)
) WITHOUT ROWID;
"""

# A run that its program gave an id of its own.
NAMED = """
ALTER TABLE runs ADD COLUMN announced_id TEXT;   -- the id that `runyard run` announced it with
ALTER TABLE runs ADD COLUMN left_behind INTEGER NOT NULL DEFAULT 0;
                                         -- whether its program went on to another run
CREATE INDEX runs_by_announced_id ON runs (announced_id) WHERE announced_id IS NOT NULL;
"""

# How many runs a project has ever had, deleted ones too: the number in a new run's name.
COUNTED = """
ALTER TABLE projects ADD COLUMN runs_made INTEGER NOT NULL DEFAULT 0;
UPDATE projects SET runs_made = (SELECT count(*) FROM runs WHERE runs.project = projects.key);
CREATE TRIGGER runs_counted AFTER INSERT ON runs
BEGIN
    UPDATE projects SET runs_made = runs_made + 1 WHERE key = NEW.project;
END;
"""

# What the list of projects and lists of runs read of every run stands together in an index. A row
# has its config and summary in the middle: what stands behind them is pages away.
LISTED = """
CREATE INDEX runs_listed ON runs (project, state, created_at, ended_at, heartbeat_at);
DROP INDEX runs_by_creation;
CREATE INDEX runs_by_creation ON runs (created_at, project, state);
"""

# How many runs are alive is asked by every command; SQLite reads a run's row for each of them if
# the index has less than this, and takes a larger index that has all runs.
COUNTED_ALIVE = """
DROP INDEX runs_alive;
CREATE INDEX runs_alive ON runs (heartbeat_at, project, state)
    WHERE state IN ('running', 'preempting');
"""
