"""The tracker: what every route works on."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import hashlib
import os
import secrets
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Concatenate, ParamSpec, TypeVar

from runyard.errors import StateError
from runyard.home import Home, write_whole
from runyard.server.filesystems import is_network_folder
from runyard.server.joiner import Joiner
from runyard.server.store import deletion, leftovers
from runyard.server.store.database import Database, DiskFull
from runyard.server.store.field_memory import FieldMemory
from runyard.server.uploads import Uploads
from runyard.server.vacuum import Vacuum

Given = ParamSpec("Given")
Result = TypeVar("Result")


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
        self.uploads: Uploads
        self.joiner = Joiner()
        self.vacuum = Vacuum()
        self.remembered = FieldMemory()

    def open(self, key: str) -> None:
        """Open the store and accept `key` as this user's."""
        try:
            self._database.open()
            self._database.write(lambda connection: _add_key(connection, key)).result()
            self._callers = self._database.read(_all_callers).result()
            self.uploads = Uploads(self.home.files, _server_secret(self.home))
            self.uploads.clear_unfinished()
            self.uploads.clear_orphans(self._database.read(deletion.all_keys).result())
            self.take_in_leftovers()
        except (sqlite3.Error, DiskFull) as error:
            self.close()
            raise _store_error(self.home, error) from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._database.close()

    def take_in_leftovers(self) -> None:
        leftovers.take_in(self._database, self.home.spool, time.time())

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


def new_key() -> str:
    """Forty letters and digits: the one form that every client version accepts."""
    return secrets.token_hex(20)


def hash_key(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def _add_key(connection: sqlite3.Connection, key: str) -> None:
    now, name = time.time(), _user_name()
    connection.execute(
        "INSERT INTO users (name, created_at) VALUES (?, ?) ON CONFLICT DO NOTHING", (name, now)
    )
    connection.execute(
        "INSERT INTO api_keys (hash, user, created_at) "
        "SELECT ?, key, ? FROM users WHERE name = ? ON CONFLICT DO NOTHING",
        (hash_key(key), now, name),
    )


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # In a container, a user can be a mere number.
        return f"user{os.getuid()}"


def _all_callers(connection: sqlite3.Connection) -> dict[str, Caller]:
    rows = connection.execute(
        "SELECT hash, users.key AS key, name FROM api_keys JOIN users ON users.key = api_keys.user"
    )
    return {row["hash"]: Caller(row["key"], row["name"]) for row in rows}


def _server_secret(home: Home) -> bytes:
    # Kept over restarts: clients hold addresses that it signed.
    with contextlib.suppress(FileNotFoundError, ValueError):
        return bytes.fromhex(home.secret.read_text())
    secret = secrets.token_bytes(32)
    write_whole(home.secret, secret.hex())
    return secret


def _store_error(home: Home, error: Exception) -> StateError:
    text = str(error)
    if "full" in text or "disk I/O" in text:
        mend = "free some space on that disk, or set RUNYARD_HOME to a folder on another one"
    elif "malformed" in text or "not a database" in text:
        mend = f"move {home.database} aside (keep it: much can be recovered) and try again"
    else:
        mend = "set RUNYARD_HOME to another folder if this does not pass"
    return StateError(f"cannot open the database {home.database}", said=error, mend=mend)
