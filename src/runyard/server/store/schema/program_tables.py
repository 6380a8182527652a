"""What the programs of a sweep can do, as its attempts have shown."""

TABLES = """
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
