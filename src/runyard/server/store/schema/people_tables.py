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

# What a key opens and until when, for whom it was made, and how it is used.
KEYS = """
ALTER TABLE api_keys ADD COLUMN kind TEXT NOT NULL DEFAULT 'person';
                                         -- folder, person, shell, run, job; see `store/api_keys`
ALTER TABLE api_keys ADD COLUMN scope TEXT NOT NULL DEFAULT 'all';   -- or runs
ALTER TABLE api_keys ADD COLUMN lifetime REAL;                       -- seconds after its last use
ALTER TABLE api_keys ADD COLUMN expires_at REAL;                     -- NULL: never
ALTER TABLE api_keys ADD COLUMN used_from TEXT;                      -- the address, last time
ALTER TABLE api_keys ADD COLUMN port INTEGER;  -- the server's, when it was made
ALTER TABLE api_keys ADD COLUMN run INTEGER;   -- it does not end before this run
ALTER TABLE api_keys ADD COLUMN retired TEXT;                        -- why it is refused
"""

# The first characters of a key, by which its owner tells it from others.
KEY_STARTS = "ALTER TABLE api_keys ADD COLUMN starts TEXT;  -- NULL: made before this was stored"

# Accounts of a team that programs log with.
SERVICE = "ALTER TABLE users ADD COLUMN service TEXT;  -- what it is for; NULL: a person"

# Browsers that are logged in to the page.
SESSIONS = """
CREATE TABLE page_sessions (
    hash TEXT PRIMARY KEY,               -- of the cookie
    proof TEXT NOT NULL,                 -- the hash of what the page sends beside the cookie
    api_key TEXT NOT NULL REFERENCES api_keys ON DELETE CASCADE,  -- the key that opened it
    browser TEXT NOT NULL,
    created_at REAL NOT NULL,
    confirmed_at REAL NOT NULL,          -- when its user last showed a code or a key
    used_at REAL NOT NULL,               -- some minutes late: not every request is a write
    used_from TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX page_sessions_by_key ON page_sessions (api_key);
"""
