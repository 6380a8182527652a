"""What programs logged, in columns."""

TABLES = """
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

CREATE TABLE placements (                -- where the rows of one of several writers are
    run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    stream INTEGER NOT NULL,
    writer TEXT NOT NULL,
    start INTEGER NOT NULL,              -- row numbers of the writer's own
    stop INTEGER NOT NULL,
    place INTEGER NOT NULL,              -- the run's row that the first of them is
    PRIMARY KEY (run, stream, writer, start)
) WITHOUT ROWID;

CREATE TABLE archives (                  -- rows that a rewind or a restart took out of a run
    run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    number INTEGER NOT NULL,             -- its rows are in the streams 2n and 2n + 1
    reason TEXT NOT NULL,                -- rewound, restarted, late
    made_at REAL NOT NULL,
    config TEXT NOT NULL,
    summary TEXT NOT NULL,
    PRIMARY KEY (run, number)
) WITHOUT ROWID;
"""
