"""The page's sessions in the database: hashes of what a browser holds, when and where it was."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from runyard.server.people.api_keys import key_id as public_id


@dataclass
class Session:
    """A browser that is logged in. Equal only to itself: the server has one object for each."""

    hash: str
    proof: str
    key_id: str
    browser: str
    created_at: float
    confirmed_at: float
    used_at: float
    used_from: str

    @property
    def id(self) -> str:
        return public_id(self.hash)


def load(connection: sqlite3.Connection) -> list[Session]:
    rows = connection.execute(
        "SELECT hash, proof, api_key, browser, created_at, confirmed_at, used_at, used_from "
        "FROM page_sessions"
    )
    return [Session(row[0], row[1], public_id(row[2]), *row[3:]) for row in rows]


def add(connection: sqlite3.Connection, session: Session) -> bool:
    """False if the key behind it was revoked in the meantime."""
    done = connection.execute(
        "INSERT INTO page_sessions (hash, proof, api_key, browser, created_at, confirmed_at, "
        "used_at, used_from) SELECT ?, ?, hash, ?, ?, ?, ?, ? FROM api_keys "
        "WHERE substr(hash, 1, ?) = ?",
        (
            session.hash,
            session.proof,
            session.browser,
            session.created_at,
            session.confirmed_at,
            session.used_at,
            session.used_from,
            len(session.key_id),
            session.key_id,
        ),
    )
    return bool(done.rowcount)


def confirm(connection: sqlite3.Connection, hashed: str, now: float) -> None:
    connection.execute("UPDATE page_sessions SET confirmed_at = ? WHERE hash = ?", (now, hashed))


def note_uses(connection: sqlite3.Connection, uses: Iterable[tuple[float, str, str]]) -> None:
    """`uses` are when, from which address, and the session's hash."""
    connection.executemany(
        "UPDATE page_sessions SET used_at = ?, used_from = ? WHERE hash = ?", uses
    )


def end(connection: sqlite3.Connection, hashes: Iterable[str]) -> None:
    connection.executemany("DELETE FROM page_sessions WHERE hash = ?", [(one,) for one in hashes])
