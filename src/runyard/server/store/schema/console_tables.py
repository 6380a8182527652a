"""What programs printed."""

TABLES = """
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
