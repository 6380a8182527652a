"""Files that clients upload to runs: their list in the database, their bytes on disk.

On disk a file lies under a hash of its name: what a client calls it cannot lead out of its run's
folder.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import AsyncIterator, Container, Sequence
from pathlib import Path
from sqlite3 import Connection

from runyard.server.runs.patterns import Pattern
from runyard.server.store.incoming import Incoming
from runyard.server.store.sql import Row, exists, fetch_number


def put_file(db: Connection, run: int, name: str, size: int, md5: str, now: float) -> bool:
    """A file that has come in whole. Says whether its run is still there."""
    if not exists(db, "SELECT 1 FROM runs WHERE key = ?", (run,)):
        return False
    db.execute(
        "INSERT OR REPLACE INTO files (run, name, size, md5, updated_at) VALUES (?, ?, ?, ?, ?)",
        (run, name, size, md5, now),
    )
    return True


def count_files(db: Connection, run: int) -> int:
    return fetch_number(db, "SELECT count(*) FROM files WHERE run = ?", (run,))


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
    tests, values = ["run = ?"], list[object]([run])
    if names:
        tests.append("name IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(list(names)))
    if after is not None:
        tests.append("name > ?")
        values.append(after)
    rows = db.execute(
        f"SELECT * FROM files WHERE {' AND '.join(tests)} ORDER BY name LIMIT ?",
        (*values, -1 if pattern else first + 1),
    ).fetchall()
    if pattern:
        like = _like(pattern)
        rows = [row for row in rows if like.search(row["name"])]
    return rows[:first], len(rows) > first


def delete_file(db: Connection, run: int, name: str) -> bool:
    changed = db.execute("DELETE FROM files WHERE run = ? AND name = ?", (run, name))
    return changed.rowcount > 0


def _like(pattern: str) -> Pattern:
    """MySQL's LIKE, which clients know. Its own in SQLite can be made to search for hours."""
    expression, letters = "", iter(pattern)
    for letter in letters:
        if letter == "\\":
            expression += re.escape(next(letters, letter))
        else:
            expression += {"%": ".*", "_": "."}.get(letter) or re.escape(letter)
    return Pattern(f"^(?:{expression})$", ignore_case=True)


_LONGEST_NAME = 1024


class UnsafeName(ValueError):
    """A file name that no well-behaved client sends."""


def check_name(name: str) -> None:
    parts = name.split("/")
    if (
        not name
        or len(name.encode(errors="replace")) > _LONGEST_NAME
        or name.startswith("/")
        or any(part in ("", ".", "..") for part in parts)
        or any(ord(letter) < 32 or 0xD800 <= ord(letter) < 0xE000 for letter in name)
    ):
        raise UnsafeName(f"{name[:100]!r} cannot be the name of a run's file")


class Uploads:
    """The files of runs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # On the same file system as the files, and never the name of a run's folder.
        self._incoming = Incoming(folder / "unfinished")

    def path(self, run: int, name: str) -> Path:
        return self._folder / str(run) / hashlib.sha256(name.encode()).hexdigest()

    async def receive(self, run: int, name: str, chunks: AsyncIterator[bytes]) -> int:
        """Store a file whole or not at all; returns its size."""
        return await self._incoming.receive(chunks, self.path(run, name))

    def clear_unfinished(self) -> None:
        """Remove what uploads left that a dead server was receiving."""
        self._incoming.clear()

    def remove(self, run: int, name: str) -> None:
        self.path(run, name).unlink(missing_ok=True)

    def remove_run(self, run: int) -> None:
        """Every file of a run. What cannot be removed now goes at the next start."""
        shutil.rmtree(self._folder / str(run), ignore_errors=True)

    def clear_orphans(self, known: Container[int]) -> None:
        for path in self._folder.iterdir():
            if path.name.isdecimal() and int(path.name) not in known:
                self.remove_run(int(path.name))
