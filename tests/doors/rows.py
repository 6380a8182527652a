"""Every row of the database with the entity that it belongs to, and what a request changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from runyard.server.tracker import Tracker

# Where a row's entity stands, or which row of another table it belongs to: (column, table).
_ENTITY = {
    "projects": "entity",
    "deleted_runs": "entity",
    "blobs": "entity",
    "custom_charts": "entity",
    "users": "name",
    "teams": "name",
}
_PART_OF: Mapping[str, tuple[str, str]] = {
    "runs": ("project", "projects"),
    "sweeps": ("project", "projects"),
    "collections": ("project", "projects"),
    "reports": ("project", "projects"),
    "figures": ("project", "projects"),
    "jobs": ("user", "users"),
    "api_keys": ("user", "users"),
    "page_sessions": ("api_key", "api_keys"),
    "members": ("team", "teams"),
    "invitations": ("team", "teams"),
    **dict.fromkeys(
        ("files", "alerts", "revisions", "attempts", "clients", "resume_questions", "console",
         "lines", "batches", "segments", "series", "placements", "archives", "lineage", "trash"),
        ("run", "runs"),
    ),
    **dict.fromkeys(("agents", "trials", "programs", "estimates"), ("sweep", "sweeps")),
    **dict.fromkeys(("artifacts", "memberships", "aliases"), ("collection", "collections")),
    **dict.fromkeys(("manifests", "claims", "client_ids"), ("artifact", "artifacts")),
    "entries": ("manifest", "manifests"),
}  # fmt: skip
# Names of metrics are kept once for all; the rest is the database's own.
_NOBODYS = frozenset({"keys", "about", "sqlite_sequence", "sqlite_stat1"})
# When a key was used, and when it ends for want of that, is noted whoever looks at it.
_IGNORED = frozenset({"used_at", "used_from", "expires_at"})

# Whoever is in a team has come by themselves: a membership is the member's too. Others may end it.
_JOINED = "teams joined"
_MEMBERS = "SELECT name, team FROM members JOIN users ON users.key = members.user"

Rows = frozenset[tuple[str, str | None, tuple[object, ...]]]


def read(tracker: Tracker) -> Rows:
    return tracker._database.read(_read).result()


def changed(before: Rows, after: Rows) -> set[tuple[str, str | None]]:
    """The tables in which rows came, went or changed, with the entities of these rows."""
    joined = {row for row in after - before if row[0] == _JOINED}
    lasting = {row for row in before ^ after if row[0] != _JOINED}
    return {(table, entity) for table, entity, _ in joined | lasting}


def _read(connection: sqlite3.Connection) -> Rows:
    tables = [
        row["name"]
        for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    ]
    found = []
    for table in tables:
        if table in _NOBODYS:
            continue
        assert table in _ENTITY or table in _PART_OF, (
            f"whose are the rows of the table {table}? Add it to tests/doors/rows.py"
        )
        for row in connection.execute(f"SELECT {_owner(table)} AS owner_, * FROM {table}"):
            values = tuple(row[name] for name in row.keys() if name not in _IGNORED)  # noqa: SIM118
            found.append((table, values[0], values[1:]))
    found += [(_JOINED, name, (team,)) for name, team in connection.execute(_MEMBERS)]
    return frozenset(found)


def _owner(table: str) -> str:
    if table in _ENTITY:
        return f"{table}.{_ENTITY[table]}"
    column, parent = _PART_OF[table]
    key = {"teams": "name", "api_keys": "hash"}.get(parent, "key")
    return f"(SELECT {_owner(parent)} FROM {parent} WHERE {parent}.{key} = {table}.{column})"
