"""What artifacts' versions hold."""

TABLES = """
CREATE TABLE manifests (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    artifact INTEGER NOT NULL REFERENCES artifacts ON DELETE CASCADE,
    kind TEXT NOT NULL,                  -- FULL, INCREMENTAL, PATCH
    digest TEXT NOT NULL,                -- MD5 of the file to come
    base INTEGER,                        -- the artifact that an INCREMENTAL one adds to
    frame TEXT,                          -- all but the contents; null until it has arrived
    created_at REAL NOT NULL
);
CREATE INDEX manifests_by_artifact ON manifests (artifact);

CREATE TABLE entries (
    manifest INTEGER NOT NULL REFERENCES manifests ON DELETE CASCADE,
    path TEXT NOT NULL,
    digest TEXT NOT NULL,
    size INTEGER NOT NULL,
    is_stored INTEGER NOT NULL,          -- 0 for a reference
    entry TEXT NOT NULL,                 -- as it came, in JSON
    PRIMARY KEY (manifest, path)
) WITHOUT ROWID;
CREATE INDEX entries_by_digest ON entries (digest);

CREATE TABLE blobs (
    entity TEXT NOT NULL,                -- contents are shared within an entity, never beyond
    digest TEXT NOT NULL,                -- MD5 in base64
    size INTEGER NOT NULL,
    file TEXT NOT NULL UNIQUE,           -- never used again, so that removing it harms no newer one
    PRIMARY KEY (entity, digest)
) WITHOUT ROWID;

CREATE TABLE claims (
    digest TEXT NOT NULL,                -- of a blob that a version in the making needs
    artifact INTEGER NOT NULL REFERENCES artifacts ON DELETE CASCADE,
    PRIMARY KEY (digest, artifact)
) WITHOUT ROWID;
CREATE INDEX claims_by_artifact ON claims (artifact);
"""
