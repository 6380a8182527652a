"""Artifacts' versions, by what name they go, and which runs made and used them."""

from __future__ import annotations

TABLES = """
CREATE TABLE collections (
    key INTEGER PRIMARY KEY AUTOINCREMENT,  -- ids that clients remember must not come again
    project INTEGER NOT NULL REFERENCES projects ON DELETE CASCADE,
    name TEXT NOT NULL,
    type TEXT NOT NULL,
    is_portfolio INTEGER NOT NULL DEFAULT 0, -- holds links to versions of other collections
    description TEXT,
    tags TEXT NOT NULL DEFAULT '[]',
    next_version INTEGER NOT NULL DEFAULT 0,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    UNIQUE (project, name)
);
CREATE INDEX collections_by_type ON collections (project, type);

CREATE TABLE artifacts (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    collection INTEGER NOT NULL REFERENCES collections ON DELETE CASCADE,
    state TEXT NOT NULL,                 -- PENDING, COMMITTED
    digest TEXT NOT NULL,                -- over names and digests of the contents
    same_as INTEGER REFERENCES artifacts ON DELETE CASCADE, -- found at commit to be there already
    run INTEGER REFERENCES runs ON DELETE SET NULL,         -- that made it
    distributed_id TEXT,                 -- shared by the writers of one version
    description TEXT,
    metadata TEXT,
    tags TEXT NOT NULL DEFAULT '[]',
    wanted_aliases TEXT NOT NULL DEFAULT '[]',              -- given at commit
    history_step INTEGER,
    ttl INTEGER,                         -- seconds from creation; none, or not above 0: for ever
    size INTEGER NOT NULL DEFAULT 0,
    file_count INTEGER NOT NULL DEFAULT 0,
    manifest INTEGER,                    -- the one that counts, from commit on
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL
);
CREATE INDEX artifacts_by_digest ON artifacts (collection, digest);
CREATE INDEX artifacts_by_run ON artifacts (run);
CREATE INDEX artifacts_by_same ON artifacts (same_as) WHERE same_as IS NOT NULL;
CREATE INDEX artifacts_with_ttl ON artifacts (created_at) WHERE ttl > 0;
CREATE INDEX artifacts_pending ON artifacts (created_at) WHERE state = 'PENDING';

CREATE TABLE memberships (
    collection INTEGER NOT NULL REFERENCES collections ON DELETE CASCADE,
    artifact INTEGER NOT NULL REFERENCES artifacts ON DELETE CASCADE,
    version INTEGER NOT NULL,
    created_at REAL NOT NULL,
    PRIMARY KEY (collection, version),
    UNIQUE (artifact, collection)
) WITHOUT ROWID;

CREATE TABLE aliases (
    collection INTEGER NOT NULL REFERENCES collections ON DELETE CASCADE,
    name TEXT NOT NULL,
    artifact INTEGER NOT NULL REFERENCES artifacts ON DELETE CASCADE,
    PRIMARY KEY (collection, name)
) WITHOUT ROWID;
CREATE INDEX aliases_by_artifact ON aliases (artifact);

CREATE TABLE client_ids (
    id TEXT PRIMARY KEY,                 -- chosen by a client before it knew ours
    artifact INTEGER REFERENCES artifacts ON DELETE CASCADE,
    collection INTEGER REFERENCES collections ON DELETE CASCADE
) WITHOUT ROWID;
CREATE INDEX client_ids_by_artifact ON client_ids (artifact);
CREATE INDEX client_ids_by_collection ON client_ids (collection);

CREATE TABLE lineage (
    key INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    artifact INTEGER NOT NULL REFERENCES artifacts ON DELETE CASCADE,
    role TEXT NOT NULL,                  -- logged, used
    used_as TEXT,
    UNIQUE (run, role, artifact)
);
CREATE INDEX lineage_by_artifact ON lineage (artifact, role);
"""

# Who made a version a member of a further collection; NULL: it was logged there, or the link is
# from before this column.
LINKED_BY = "ALTER TABLE memberships ADD COLUMN linked_by INTEGER;"


CONTENTS = """
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
