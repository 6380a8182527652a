"""The list of a run's files; the bytes lie on disk (see `uploads`)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from sqlite3 import Connection

from runyard.server.runs.patterns import Pattern
from runyard.server.store.sql import Row


def put_file(db: Connection, run: int, name: str, size: int, md5: str, now: float) -> bool:
    """A file that has come in whole. Says whether its run is still there."""
    if db.execute("SELECT 1 FROM runs WHERE key = ?", (run,)).fetchone() is None:
        return False
    db.execute(
        "INSERT OR REPLACE INTO files (run, name, size, md5, updated_at) VALUES (?, ?, ?, ?, ?)",
        (run, name, size, md5, now),
    )
    return True


def count_files(db: Connection, run: int) -> int:
    found: int = db.execute("SELECT count(*) FROM files WHERE run = ?", (run,)).fetchone()[0]
    return found


def list_files(
    db: Connection,
    run: int,
    *,
    names: Sequence[str] = (),
    pattern: str | None = None,
    after: str | None = None,
    first: int = 50,
) -> tuple[list[Row], bool]:
    """Files by name, behind the name `after`; and whether there are more."""
    tests, given = ["run = ?"], list[object]([run])
    if names:
        tests.append("name IN (SELECT value FROM json_each(?))")
        given.append(json.dumps(list(names)))
    if after is not None:
        tests.append("name > ?")
        given.append(after)
    rows = db.execute(
        f"SELECT * FROM files WHERE {' AND '.join(tests)} ORDER BY name LIMIT ?",  # noqa: S608
        (*given, -1 if pattern else first + 1),
    ).fetchall()
    if pattern:
        wanted = _like(pattern)
        rows = [row for row in rows if wanted.search(row["name"])]
    return rows[:first], len(rows) > first


def delete_file(db: Connection, run: int, name: str) -> bool:
    changed = db.execute("DELETE FROM files WHERE run = ? AND name = ?", (run, name))
    return changed.rowcount > 0


def _like(pattern: str) -> Pattern:
    """MySQL's LIKE, which clients know. Its own in SQLite can be made to search for hours."""
    found, letters = "", iter(pattern)
    for letter in letters:
        if letter == "\\":
            found += re.escape(next(letters, letter))
        else:
            found += {"%": ".*", "_": "."}.get(letter) or re.escape(letter)
    return Pattern(f"^(?:{found})$", ignore_case=True)
