"""Sweeps, their trials, and the agents that run them: the ledger."""

TABLES = """
CREATE TABLE sweeps (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,                    -- eight characters, the name that clients use
    project INTEGER NOT NULL REFERENCES projects,
    user INTEGER NOT NULL REFERENCES users,
    name TEXT NOT NULL,                  -- for people
    description TEXT,
    text TEXT NOT NULL,                  -- the sweep file as it came
    config TEXT NOT NULL,                -- the same as JSON
    rules TEXT NOT NULL,                 -- what an end needs to know of it, JSON; see store/sweeps
    method TEXT NOT NULL,
    seed INTEGER NOT NULL,               -- of the search
    state TEXT NOT NULL,                 -- running, paused, finished, canceled, failed
    cause TEXT,                          -- a sentence, where it ended otherwise than it should
    run_cap INTEGER,
    size INTEGER,                        -- settings of a grid; NULL: without end
    folder TEXT,                         -- where programs run; trials: sweeps/ID/NAME in it
    controller TEXT,                     -- what a controller on somebody's machine keeps here
    scheduler TEXT,
    prior TEXT NOT NULL DEFAULT '[]',    -- keys of runs that the search knows before it begins
    tried TEXT NOT NULL DEFAULT '[]',    -- grid: indexes that those runs have done
    drawn INTEGER NOT NULL DEFAULT 0,    -- settings drawn so far; grid: the next index
    trials INTEGER NOT NULL DEFAULT 0,   -- the number of the newest trial
    removed INTEGER NOT NULL DEFAULT 0,  -- trials whose runs were deleted: the cap passes them over
    sequence INTEGER NOT NULL DEFAULT 0, -- counts ends and returns, in their order
    ended_trials INTEGER NOT NULL DEFAULT 0,
    busy_seconds REAL NOT NULL DEFAULT 0,    -- of those that finished
    has_target INTEGER NOT NULL DEFAULT 0,   -- reached: no new trials
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    started_at REAL,                     -- when the first trial was handed out
    ended_at REAL,
    UNIQUE (project, id)
);
CREATE INDEX sweeps_by_id ON sweeps (id);
CREATE INDEX sweeps_by_creation ON sweeps (created_at);

CREATE TABLE agents (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    sweep INTEGER NOT NULL REFERENCES sweeps ON DELETE CASCADE,
    user INTEGER NOT NULL REFERENCES users,
    kind TEXT NOT NULL,                  -- own; or W&B's: stock, function (inside the program)
    token TEXT,                          -- chosen by the agent: a repeated call finds it
    host TEXT NOT NULL,
    pid INTEGER,
    slots INTEGER NOT NULL DEFAULT 1,
    created_at REAL NOT NULL,
    heard_at REAL NOT NULL,
    left_at REAL,
    why TEXT,
    UNIQUE (sweep, token)
);

CREATE TABLE trials (
    sweep INTEGER NOT NULL REFERENCES sweeps ON DELETE CASCADE,
    number INTEGER NOT NULL,             -- 1, 2, ... in the order of drawing
    run INTEGER REFERENCES runs ON DELETE SET NULL,
    id TEXT NOT NULL,                    -- the run's, for life
    name TEXT NOT NULL,
    setting INTEGER NOT NULL,            -- trials of one setting differ in their seed; grid: index
    point TEXT,                          -- where the setting is in the space, JSON
    settings TEXT NOT NULL,              -- JSON, as the run's config gets them
    mark TEXT,                           -- under which somebody else's controller knows it
    state TEXT NOT NULL,                 -- waiting, running, paused; final: finished, failed,
                                         -- stopped, canceled
    cause TEXT,                          -- of the last attempt's end
    place REAL NOT NULL DEFAULT 0,       -- in the queue of those that wait; the lowest is next
    agent INTEGER REFERENCES agents ON DELETE SET NULL,
    attempt INTEGER NOT NULL DEFAULT 0,  -- the number of the newest attempt
    attempts INTEGER NOT NULL DEFAULT 0, -- how many there were
    lease REAL,                          -- running: until when its agent has it
    is_seen INTEGER NOT NULL DEFAULT 0,  -- whether this attempt has been heard of
    began_at REAL,                       -- this attempt
    stop TEXT,                           -- asked of it: stopped, canceled, paused
    stop_at REAL,                        -- when
    tries TEXT NOT NULL DEFAULT '{}',    -- ends by cause since there was progress, JSON
    steps INTEGER NOT NULL DEFAULT 0,    -- rows when it was last cut off
    is_again INTEGER NOT NULL DEFAULT 0, -- failed, and in its second round
    measured TEXT,                       -- metric → value, JSON
    score REAL,                          -- the first metric, lower is better; NULL: does not count
    ended INTEGER,                       -- its rank in the order of ending
    exit_code INTEGER,
    seconds REAL NOT NULL DEFAULT 0,     -- of all attempts
    created_at REAL NOT NULL,
    started_at REAL,
    ended_at REAL,
    PRIMARY KEY (sweep, number)
) WITHOUT ROWID;
CREATE UNIQUE INDEX trials_by_run ON trials (run);
CREATE UNIQUE INDEX trials_by_name ON trials (sweep, name);
CREATE UNIQUE INDEX trials_by_mark ON trials (sweep, mark) WHERE mark IS NOT NULL;
CREATE INDEX trials_by_state ON trials (sweep, state, place);
CREATE INDEX trials_by_setting ON trials (sweep, setting);
CREATE INDEX trials_by_score ON trials (sweep, score) WHERE score IS NOT NULL;
CREATE INDEX trials_by_end ON trials (sweep, ended) WHERE ended IS NOT NULL;
CREATE INDEX trials_at_work ON trials (lease) WHERE state = 'running';
CREATE INDEX trials_by_agent ON trials (agent) WHERE state = 'running';

CREATE INDEX attempts_by_token ON attempts (token);
"""

# What a lost lease has changed, as it was before, JSON: who comes back in time gets it back whole.
# And how many clients the run had before this attempt: what those still say is not about it.
RETURNS = """
ALTER TABLE trials ADD COLUMN lost TEXT;
ALTER TABLE trials ADD COLUMN clients INTEGER NOT NULL DEFAULT 0;
UPDATE trials SET lost = '{}'
    WHERE state = 'waiting' AND cause = 'node' AND exit_code IS NULL AND attempt > 0;
"""

# What the programs of a sweep can do, as its attempts have shown.
PROGRAMS = """
CREATE TABLE programs (
    sweep INTEGER PRIMARY KEY REFERENCES sweeps ON DELETE CASCADE,
    saves INTEGER NOT NULL DEFAULT 0,            -- some attempt left a checkpoint
    shortest_saving REAL,                        -- of these attempts, seconds
    finished INTEGER NOT NULL DEFAULT 0,         -- attempts that finished their trial
    finished_seconds REAL NOT NULL DEFAULT 0,    -- their sum
    shortest_finishing REAL,
    fruitless INTEGER NOT NULL DEFAULT 0,        -- cut off by a job's end with nothing to show for
                                                 -- it, since an attempt had
    longest_fruitless REAL NOT NULL DEFAULT 0
);
"""

# What a sweep may use, as `search/budget` writes it; and how long its trials had GPUs, where two
# programs that share one have half of it each.
BUDGETS = """
ALTER TABLE sweeps ADD COLUMN budget TEXT;
ALTER TABLE trials ADD COLUMN gpu_seconds REAL NOT NULL DEFAULT 0;
"""

# How many programs share each of its GPUs, and why: a line for people.
PACKING = """
ALTER TABLE agents ADD COLUMN packing TEXT;
"""

# The highest of the last chances that a new setting beats the best, as `bayes` judged them.
CHANCES = """
ALTER TABLE sweeps ADD COLUMN chance REAL;
"""

# How many rows its run had at the furthest of the checkpoints from which it went on.
KEPT = """
ALTER TABLE trials ADD COLUMN kept INTEGER NOT NULL DEFAULT 0;
"""

# The time of the checkpoint from which its attempt goes on, 0 without one; NULL: it has not said.
REWOUND = "ALTER TABLE trials ADD COLUMN rewound_to REAL;"
