"""Who is logged in to the page: one-time codes, and the sessions that they are exchanged for.

A browser sends its cookies to every port of a host, so on a shared machine another user's program
gets ours. A session therefore has two halves: the cookie, which no script can read, and the proof,
which the page keeps in its own storage (browsers separate that by port) and sends in a header.
Images and downloads can send no header: the ticket in their address replaces the proof, for
reading files alone. The database holds hashes of both halves, and a session ends with the key that
opened it. Secrets are looked up by their hash: how long that takes tells nothing of them.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from sqlite3 import Connection

from runyard.proof import hash_key as _hash
from runyard.server.people.api_keys import key_id as public_id

CODE_SECONDS = 600.0
# A session ends when its page was closed for so long, and in any case at an age.
IDLE_SECONDS = 12 * 3600
LONGEST_SECONDS = 7 * 24 * 3600
# Administration needs a code or a key that was shown within this time.
CONFIRMED_SECONDS = 600.0
# How late the database may be about a session's last use.
_NOTE_AFTER = 300.0
_MOST_CODES = 1_000
_MOST_SESSIONS = 100
_LONGEST_BROWSER = 300


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


class Codes:
    """Codes that log a browser in, once and soon. In memory: a restart forgets them."""

    def __init__(self) -> None:
        self._codes: dict[str, tuple[str, float]] = {}

    def make(self, key_id: str, now: float) -> str:
        self._codes = {code: it for code, it in self._codes.items() if it[1] > now}
        while len(self._codes) >= _MOST_CODES:
            del self._codes[next(iter(self._codes))]
        code = secrets.token_urlsafe(24)
        self._codes[_hash(code)] = (key_id, now + CODE_SECONDS)
        return code

    def find(self, code: str, now: float) -> str | None:
        """The key that a code stands for."""
        key_id, end = self._codes.get(_hash(code), ("", 0.0))
        return key_id if end > now else None

    def take(self, code: str, now: float) -> str | None:
        """The key that a code stands for. It is worth nothing from then on."""
        key_id = self.find(code, now)
        self._codes.pop(_hash(code), None)
        return key_id


class Sessions:
    """The sessions that are open, in memory: every request of a page asks for one."""

    def __init__(self, secret: bytes, stored: Iterable[Session]) -> None:
        self._secret = hmac.digest(secret, b"page sessions", "sha256")
        # Cookies do not know ports: two servers behind two tunnels share `localhost`.
        self.cookie = f"runyard-{hmac.digest(secret, b'cookie name', 'sha256').hex()[:10]}"
        self._open = {session.hash: session for session in stored}
        self._noted = {session.hash: session.used_at for session in self._open.values()}

    def make(self, key_id: str, browser: str, address: str, now: float) -> tuple[Session, str, str]:
        """A new session, its cookie and its proof. It is open once it is stored: `open`."""
        cookie, proof = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        session = Session(
            _hash(cookie), _hash(proof), key_id, browser[:_LONGEST_BROWSER], now, now, now, address
        )
        return session, cookie, proof

    def open(self, session: Session) -> list[Session]:
        """Take a session in; the oldest ones of its key that have to make room for it."""
        self._open[session.hash] = session
        self._noted[session.hash] = session.used_at
        of_key = [other for other in self._open.values() if other.key_id == session.key_id]
        of_key.sort(key=lambda other: other.used_at)
        return of_key[:-_MOST_SESSIONS]

    def close(self, sessions: Iterable[Session]) -> None:
        for session in sessions:
            self._open.pop(session.hash, None)
            self._noted.pop(session.hash, None)

    def all(self, now: float) -> list[Session]:
        return [session for session in self._open.values() if not _is_over(session, now)]

    def over(self, now: float) -> list[Session]:
        return [session for session in self._open.values() if _is_over(session, now)]

    def is_open(self, session: Session, now: float) -> bool:
        return session.hash in self._open and not _is_over(session, now)

    def by_cookie(self, cookie: str, now: float) -> Session | None:
        """The session of a cookie, which alone is no reason to let anybody in."""
        session = self._open.get(_hash(cookie))
        return session if session and not _is_over(session, now) else None

    def proves(self, session: Session, proof: str) -> bool:
        return hmac.compare_digest(session.proof, _hash(proof))

    def ticket(self, session: Session) -> str:
        return hmac.digest(self._secret, session.hash.encode(), "sha256").hex()

    def admits(self, session: Session, ticket: str) -> bool:
        return hmac.compare_digest(self.ticket(session).encode(), ticket.encode())

    def use(self, session: Session, address: str, now: float) -> None:
        session.used_at, session.used_from = now, address

    def take_uses(self, *, at_once: bool = False) -> list[tuple[float, str, str]]:
        """What the database does not know yet of when sessions were used."""
        late = 0.0 if at_once else _NOTE_AFTER
        uses = [
            (session.used_at, session.used_from, session.hash)
            for session in self._open.values()
            if session.used_at - self._noted[session.hash] > late
        ]
        self._noted.update({hashed: used_at for used_at, _, hashed in uses})
        return uses


def is_confirmed(session: Session, now: float) -> bool:
    return now - session.confirmed_at < CONFIRMED_SECONDS


def ends_at(session: Session) -> float:
    """When it is over if its page is not used again."""
    return min(session.used_at + IDLE_SECONDS, session.created_at + LONGEST_SECONDS)


def _is_over(session: Session, now: float) -> bool:
    return now >= ends_at(session)


def load(db: Connection) -> list[Session]:
    rows = db.execute(
        "SELECT hash, proof, api_key, browser, created_at, confirmed_at, used_at, used_from "
        "FROM page_sessions"
    )
    return [Session(row[0], row[1], public_id(row[2]), *row[3:]) for row in rows]


def add(db: Connection, session: Session) -> bool:
    done = db.execute(
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


def confirm(db: Connection, hashed: str, now: float) -> None:
    db.execute("UPDATE page_sessions SET confirmed_at = ? WHERE hash = ?", (now, hashed))


def note_uses(db: Connection, uses: Iterable[tuple[float, str, str]]) -> None:
    """`uses` are when, from which address, and the session's hash."""
    db.executemany("UPDATE page_sessions SET used_at = ?, used_from = ? WHERE hash = ?", uses)


def end(db: Connection, hashes: Iterable[str]) -> None:
    db.executemany("DELETE FROM page_sessions WHERE hash = ?", [(session,) for session in hashes])
