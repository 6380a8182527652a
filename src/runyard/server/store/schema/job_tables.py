"""Slurm's jobs that runyard submitted, and which of them an agent is in."""

TABLES = """
CREATE TABLE jobs (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    user INTEGER NOT NULL REFERENCES users,
    cluster TEXT NOT NULL,               -- Slurm's name for itself
    job_id TEXT NOT NULL,                -- Slurm's number; an array's is the whole array's
    sweep INTEGER REFERENCES sweeps ON DELETE SET NULL,
    kind TEXT NOT NULL,                  -- agents, server, shell, build, gauge
    name TEXT NOT NULL,
    array TEXT,                          -- as asked for: 0-29%5; NULL: not an array
    tasks INTEGER NOT NULL DEFAULT 1,
    folder TEXT NOT NULL DEFAULT '',     -- where its script and its logs are
    log_pattern TEXT,                    -- Slurm's: .../%A_%a.log
    asked TEXT NOT NULL DEFAULT '{}',    -- resources of each task, JSON
    snapshot TEXT,                       -- of the code that it runs
    submitted_at REAL NOT NULL,
    polled_at REAL,                      -- when Slurm was last asked; NULL: never
    states TEXT NOT NULL DEFAULT '{}',   -- state → how many tasks, JSON
    reason TEXT,                         -- why the first of those that wait does
    starts_at REAL,                      -- Slurm's guess, for those that wait
    started_at REAL,
    ended_at REAL,                       -- NULL: not known to be over
    used TEXT NOT NULL DEFAULT '{}',     -- against what was asked, JSON
    UNIQUE (user, cluster, job_id, submitted_at)
);
CREATE INDEX jobs_by_id ON jobs (job_id);
CREATE INDEX jobs_by_sweep ON jobs (sweep) WHERE sweep IS NOT NULL;
CREATE INDEX jobs_by_time ON jobs (submitted_at);
CREATE INDEX jobs_open ON jobs (submitted_at) WHERE ended_at IS NULL;

ALTER TABLE agents ADD COLUMN job TEXT;  -- as Slurm writes it: 123, or 123_4 in an array
ALTER TABLE agents ADD COLUMN node TEXT; -- Slurm's name for where it runs
CREATE INDEX agents_by_job ON agents (job) WHERE job IS NOT NULL;
"""

# As they were submitted. Text, and JSON: kind, image, modules, variables and so on.
SCRIPT = """
ALTER TABLE jobs ADD COLUMN script TEXT;
ALTER TABLE jobs ADD COLUMN environment TEXT NOT NULL DEFAULT '{}';
"""

# What is asked of Slurm's jobs on the page, which cannot ask Slurm itself.
WISH = """
ALTER TABLE jobs ADD COLUMN wish TEXT;   -- cancel; NULL: nothing is asked of it
"""

# What kinds of experiments need, as they were measured, and what was expected of sweeps.
FIGURES = """
CREATE TABLE figures (                   -- one measurement by `runyard gauge`
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    project INTEGER NOT NULL REFERENCES projects ON DELETE CASCADE,
    kind TEXT NOT NULL,                  -- of experiment: train.py, train.py algo=ppo
    hardware TEXT NOT NULL,              -- the GPU's model; empty: none
    user INTEGER NOT NULL REFERENCES users,
    made_at REAL NOT NULL,
    figures TEXT NOT NULL                -- JSON
);
CREATE INDEX figures_by_kind ON figures (project, kind, made_at);

CREATE TABLE estimates (                 -- what was expected when a sweep was made
    sweep INTEGER PRIMARY KEY REFERENCES sweeps ON DELETE CASCADE,
    kind TEXT NOT NULL,
    estimate TEXT NOT NULL               -- JSON; {} where nothing was known
);
CREATE INDEX estimates_by_kind ON estimates (kind);
"""
