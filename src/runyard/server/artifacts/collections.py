"""Collections: the versions of one artifact under one name, or links to versions of others."""

from __future__ import annotations

import re
from sqlite3 import Connection
from typing import Any

from runyard.server.store import sql
from runyard.server.store.names import BadName
from runyard.server.store.sql import Row, fetch_number, fetch_one

_SELECT = (
    "SELECT collections.*, projects.entity AS entity, projects.name AS project_name "
    "FROM collections JOIN projects ON projects.key = collections.project "
)
_NAME = re.compile(r"[\w.\- ]{1,128}", re.ASCII)
_LONGEST_TYPE = 128


class Mismatch(ValueError):
    """The collection that is there is not of the kind that is asked for."""


def check_collection(name: str) -> None:
    if not _NAME.fullmatch(name) or name in (".", ".."):
        raise BadName(
            f"{name[:200]!r} cannot be the name of an artifact: use 1 to 128 letters, digits, "
            "dashes, underscores and dots"
        )


def check_type(name: str) -> None:
    if not name or len(name) > _LONGEST_TYPE or not name.isprintable() or set(name) & set(":/"):
        raise BadName(f"{name[:200]!r} cannot be an artifact type")


def by_key(db: Connection, key: int) -> Row | None:
    return fetch_one(db, _SELECT + "WHERE collections.key = ?", (key,))


def by_name(
    db: Connection, entity: str, project: str, name: str, kind: str | None = None
) -> Row | None:
    row: Row | None = db.execute(
        _SELECT + "WHERE projects.entity = ? AND projects.name = ? AND collections.name = ?",
        (entity, project, name),
    ).fetchone()
    return None if row is not None and kind not in (None, row["type"]) else row


def ensure(
    db: Connection, project: int, name: str, kind: str, now: float, *, is_portfolio: bool = False
) -> Row:
    """The collection of that name, made if it is missing; refused if it is of another type."""
    db.execute(
        "INSERT INTO collections (project, name, type, is_portfolio, created_at, updated_at) "
        "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (project, name, kind, is_portfolio, now, now),
    )
    row: Row = db.execute(
        _SELECT + "WHERE collections.project = ? AND collections.name = ?", (project, name)
    ).fetchone()
    if row["type"] != kind:
        raise Mismatch(
            f"{name} holds artifacts of type {row['type']}, not {kind}: take another name"
        )
    if bool(row["is_portfolio"]) != is_portfolio:
        kinds = ("artifacts of its own", "links to artifacts")
        raise Mismatch(
            f"{name} holds {kinds[row['is_portfolio']]}, not {kinds[is_portfolio]}: "
            "take another name"
        )
    return row


def listed(
    db: Connection, entity: str, project: str, kind: str | None, *, after: int, limit: int
) -> list[Row]:
    tests, values = "", list[Any]([entity, project, after])
    if kind is not None:
        tests = "AND collections.type = ? "
        values.append(kind)
    return db.execute(
        _SELECT + "WHERE projects.entity = ? AND projects.name = ? AND collections.key > ? "
        f"{tests}ORDER BY collections.key LIMIT ?",
        [*values, limit],
    ).fetchall()


def count(db: Connection, entity: str, project: str, kind: str | None) -> int:
    return fetch_number(
        db,
        "SELECT count(*) FROM collections JOIN projects ON projects.key = collections.project "
        "WHERE projects.entity = ? AND projects.name = ? AND coalesce(collections.type = ?, 1)",
        (entity, project, kind),
    )


def types(db: Connection, entity: str, project: str) -> list[Row]:
    """The types in a project, each with the time when it came up."""
    return db.execute(
        "SELECT collections.type AS name, min(collections.created_at) AS created_at "
        "FROM collections JOIN projects ON projects.key = collections.project "
        "WHERE projects.entity = ? AND projects.name = ? "
        "GROUP BY collections.type ORDER BY collections.type",
        (entity, project),
    ).fetchall()


def update(db: Connection, key: int, now: float, **columns: Any) -> None:
    sql.update(db, "collections", {"key": key}, {**columns, "updated_at": now})


def next_version(db: Connection, key: int) -> int:
    """A version number that no version of this collection has or had."""
    version: int = db.execute(
        "SELECT next_version FROM collections WHERE key = ?", (key,)
    ).fetchone()[0]
    db.execute("UPDATE collections SET next_version = ? WHERE key = ?", (version + 1, key))
    return version


def delete(db: Connection, key: int) -> None:
    db.execute("DELETE FROM collections WHERE key = ?", (key,))
