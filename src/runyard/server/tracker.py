"""The tracker: what every route works on."""

from __future__ import annotations

import asyncio
import getpass
import hashlib
import logging
import secrets
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Concatenate, ParamSpec, TypeVar

from runyard.errors import StateError
from runyard.home import Home, write_whole
from runyard.server import states
from runyard.server.filesystems import is_network_folder
from runyard.server.store import leftovers, streams
from runyard.server.store.database import Database
from runyard.server.uploads import Uploads

log = logging.getLogger(__name__)

Given = ParamSpec("Given")
Result = TypeVar("Result")

_LOOK_FOR_SILENCE_SECONDS = 10.0


@dataclass(frozen=True)
class Caller:
    """The user behind a key."""

    key: int
    name: str


class Tracker:
    """One state folder, opened."""

    def __init__(self, home: Home, *, exclusive: bool | None = None) -> None:
        self.home = home
        self.started_at = time.time()
        if exclusive is None:
            exclusive = is_network_folder(home.path)
        self._database = Database(home.database, exclusive=exclusive)
        self._callers: dict[str, Caller] = {}
        self.uploads = Uploads(home.files, b"")

    def open(self, key: str) -> None:
        """Open the store and accept `key` as this user's."""
        try:
            self._database.open()
            self._database.write(lambda connection: _add_key(connection, key)).result()
            self._callers = self._database.read(_all_callers).result()
            self.uploads = Uploads(self.home.files, _server_secret(self.home))
            self._take_in_leftovers()
        except sqlite3.DatabaseError as error:
            raise _store_error(self.home, error) from error

    def close(self) -> None:
        self._database.close()

    def _take_in_leftovers(self) -> None:
        taken = self._database.write(
            lambda connection: leftovers.take_in(connection, self.home.spool, time.time())
        ).result()
        leftovers.remove(taken)

    def caller(self, key: str) -> Caller | None:
        return self._callers.get(hash_key(key))

    async def write(
        self,
        change: Callable[Concatenate[sqlite3.Connection, Given], Result],
        *args: Given.args,
        **kwargs: Given.kwargs,
    ) -> Result:
        """Make a change, and come back when it is on disk."""
        return await asyncio.wrap_future(
            self._database.write(lambda connection: change(connection, *args, **kwargs))
        )

    async def read(
        self,
        question: Callable[Concatenate[sqlite3.Connection, Given], Result],
        *args: Given.args,
        **kwargs: Given.kwargs,
    ) -> Result:
        return await asyncio.wrap_future(
            self._database.read(lambda connection: question(connection, *args, **kwargs))
        )

    async def watch_silence(self) -> None:
        """For as long as the server runs: mark runs that nobody has heard of for too long."""
        while True:
            await asyncio.sleep(_LOOK_FOR_SILENCE_SECONDS)
            try:
                await asyncio.to_thread(self._take_in_leftovers)
            except Exception:
                log.exception("could not take in what a dead process left")
            # While we were down nobody could be heard: count from our own start at the earliest.
            if time.time() - self.started_at < states.SILENT_SECONDS:
                continue
            try:
                before = time.time() - states.SILENT_SECONDS
                marked = await self.write(streams.mark_silent, before)
            except Exception:
                log.exception("could not look for silent runs")
                continue
            if marked:
                log.info("%d runs fell silent", marked)


def new_key() -> str:
    """Forty letters and digits: the one form that every client version accepts."""
    return secrets.token_hex(20)


def hash_key(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def _add_key(connection: sqlite3.Connection, key: str) -> None:
    now, name = time.time(), getpass.getuser()
    connection.execute(
        "INSERT INTO users (name, created_at) VALUES (?, ?) ON CONFLICT DO NOTHING", (name, now)
    )
    connection.execute(
        "INSERT INTO api_keys (hash, user, created_at) "
        "SELECT ?, key, ? FROM users WHERE name = ? ON CONFLICT DO NOTHING",
        (hash_key(key), now, name),
    )


def _all_callers(connection: sqlite3.Connection) -> dict[str, Caller]:
    rows = connection.execute(
        "SELECT hash, users.key AS key, name FROM api_keys JOIN users ON users.key = api_keys.user"
    )
    return {row["hash"]: Caller(row["key"], row["name"]) for row in rows}


def _server_secret(home: Home) -> bytes:
    # Kept over restarts: clients hold addresses that it signed.
    if not home.secret.exists():
        write_whole(home.secret, secrets.token_hex(32))
    return bytes.fromhex(home.secret.read_text())


def _store_error(home: Home, error: sqlite3.DatabaseError) -> StateError:
    text = str(error)
    if "full" in text or "disk I/O" in text:
        mend = "free some space on that disk, or set RUNYARD_HOME to a folder on another one"
    elif "malformed" in text or "not a database" in text:
        mend = f"move {home.database} aside (keep it: much can be recovered) and try again"
    else:
        mend = "set RUNYARD_HOME to another folder if this does not pass"
    return StateError(f"cannot open the database {home.database}", said=error, mend=mend)
