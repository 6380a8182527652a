"""What kinds of experiments need, as they were measured, and what was expected of sweeps."""

TABLES = """
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
