"""Views that people keep, with their notes."""

TABLES = """
CREATE TABLE reports (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,             -- eight characters, the end of its link
    project INTEGER NOT NULL REFERENCES projects ON DELETE CASCADE,
    user INTEGER NOT NULL REFERENCES users,
    title TEXT NOT NULL,
    notes TEXT NOT NULL DEFAULT '',      -- Markdown
    view TEXT NOT NULL DEFAULT '{}',     -- what the page shows, JSON; the page's own business
    revision INTEGER NOT NULL DEFAULT 1, -- who saves an older one is told that it has changed
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL
);
CREATE INDEX reports_by_project ON reports (project, updated_at);
"""
