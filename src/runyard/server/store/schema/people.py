"""People, their keys and their teams."""

TABLES = """
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
"""

INVITATIONS = """
CREATE TABLE invitations (
    team TEXT NOT NULL REFERENCES teams ON DELETE CASCADE,
    user TEXT NOT NULL,                  -- any name: who invites does not learn whether it exists
    invited_by INTEGER NOT NULL REFERENCES users,
    created_at REAL NOT NULL,
    PRIMARY KEY (team, user)
) WITHOUT ROWID;
CREATE INDEX invitations_by_user ON invitations (user);
"""
