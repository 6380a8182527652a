"""What wrote to a run: attempts that runyard started, and clients that spoke to us."""

TABLES = """
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

CREATE TABLE resume_questions (          -- a client has asked where a run stopped, to go on there
    run INTEGER PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
    asked_at REAL NOT NULL
);
"""

# Of an attempt, as its agent saw it: peak memory, CPU seconds and so on, JSON.
USAGE = "ALTER TABLE attempts ADD COLUMN usage TEXT;"

# Who ran it, and by that in which job; NULL: no agent, or one from before this column.
AGENT = "ALTER TABLE attempts ADD COLUMN agent INTEGER;"

# What programs printed.
CONSOLES = """
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
"""

# What rows that came back since it began say of metrics: key → {then, now}, JSON.
UNHEARD = "ALTER TABLE clients ADD COLUMN unheard TEXT;"

# With which key a client began; '': before this column, or its processes came with several.
CAME_WITH = """
ALTER TABLE clients ADD COLUMN key_id TEXT NOT NULL DEFAULT '';
ALTER TABLE clients ADD COLUMN late INTEGER; -- the archive of what it sent after its attempt
"""
