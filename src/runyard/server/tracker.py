"""The tracker: what every route works on."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Sequence
from typing import Any, Concatenate

from runyard.errors import StateError
from runyard.home import Home, write_whole
from runyard.server.artifacts import artifact_deletion
from runyard.server.artifacts.blob_files import Blobs
from runyard.server.history.joiner import Joiner
from runyard.server.history.reading.project_keys import ProjectKeys
from runyard.server.jobs import cancel_requests
from runyard.server.listing.field_memory import FieldMemory
from runyard.server.people import api_keys, people
from runyard.server.people import sessions as stored_sessions
from runyard.server.people.open_sessions import Codes, Sessions
from runyard.server.people.permissions import ALL, Caller, may_write
from runyard.server.people.sessions import Session
from runyard.server.people.signed_addresses import Addresses, BadAddress, Kind
from runyard.server.runs.uploads import Uploads
from runyard.server.store.database import Database, DiskFull
from runyard.server.store.store import Arguments, Result, Store
from runyard.server.store.vacuum import Vacuum
from runyard.server.sweeps.ledger import leases
from runyard.server.sweeps.serving.claim_queues import ClaimQueues
from runyard.server.tracking import deletion, leftovers

_NOT_IN_NAMES = str.maketrans(dict.fromkeys("/\\#?%:", "-"))


class Tracker(Store):
    """One state folder, opened: the store, and what is kept in memory beside it."""

    def __init__(self, home: Home, *, before_commit: Callable[[], None] = lambda: None) -> None:
        self.home = home
        self.started_at = time.time()
        super().__init__(Database(home.database, before_commit=before_commit))
        self.changes = self._database.changes
        self.writer_times = self._database.times
        self._people = people.People()
        self._uses: dict[str, tuple[float, str, int | None]] = {}
        self.own_key = ""
        # Where clients find us: keys that we hand out may be sent to whoever has it after us.
        self.port: int | None = None
        self.url = ""
        """Where we serve, as the state folder has it."""
        self.note: str | None = None
        """What is worth telling of our start."""
        self.addresses: Addresses
        self.sessions: Sessions
        self.codes = Codes()
        self.uploads = Uploads(home.files)
        self.blobs = Blobs(home.blobs)
        self.joiner = Joiner()
        self.vacuum = Vacuum()
        self.remembered = FieldMemory()
        self.project_keys = ProjectKeys(self.changes)
        self.sweeps = ClaimQueues(self)
        # Jobs that are to be cancelled; while there are none, no claim has to look.
        self.open_wishes = 0

    def open(self, key: str, port: int | None = None) -> None:
        """Open the store and accept `key` as this user's."""
        try:
            self._database.open()
            self.own_key, self.port = key, port
            self._people = self._database.write(
                lambda connection: _own(connection, key, time.time())
            ).result()
            secret = _server_secret(self.home)
            self.addresses = Addresses(secret)
            self.sessions = Sessions(secret, self._database.read(stored_sessions.load).result())
            self.uploads.clear_unfinished()
            self.blobs.clear_unfinished()
            self.uploads.clear_orphans(self._database.read(deletion.all_keys).result())
            self.take_in_leftovers()
            self.open_wishes = self._database.read(cancel_requests.count).result()
            # While we were down nobody could renew a lease.
            now = time.time()
            self._database.write(lambda connection: leases.extend_all(connection, now)).result()
        except (sqlite3.Error, DiskFull) as error:
            self.close()
            raise _store_error(self.home, error) from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        with contextlib.suppress(Exception):  # On a full disk, say: the times are not worth it.
            uses, visits = self._take_uses(), self.sessions.take_uses(at_once=True)
            self._database.write(lambda connection: api_keys.note_uses(connection, uses)).result()
            self._database.write(
                lambda connection: stored_sessions.note_uses(connection, visits)
            ).result()
        self._database.close()

    def take_in_leftovers(self) -> None:
        leftovers.take_in(self._database, self.home.spool, time.time())

    def caller(self, key: str, address: str = "", *, is_stock: bool = False) -> Caller | None:
        """Whose key this is, if it is good; `address` is where it was sent from.

        `is_stock`: by a client that would send it to whoever has our port.
        """
        hashed, now = api_keys.hash_key(key), time.time()
        known = self._people.keys.get(hashed)
        if known is None or not known.is_good(now):
            return None
        known.note_use(now)
        if is_stock and known.kind == api_keys.PERSON:
            known.port = self.port
        self._uses[hashed] = (now, address, known.port)
        return known.caller

    def why_refused(self, key: str) -> str | None:
        """Of a key that was good once."""
        known = self._people.keys.get(api_keys.hash_key(key))
        return known.refusal if known is not None else None

    def hash_of(self, key_id: str) -> str | None:
        """What is stored of a key that was given out and is still good."""
        known = self._people.by_key_id.get(key_id)
        return known.hashed if known is not None and known.is_good(time.time()) else None

    def by_key_id(self, key_id: str) -> Caller | None:
        """The user of a key that was given out and is still good."""
        known = self._people.by_key_id.get(key_id)
        return known.caller if known is not None and known.is_good(time.time()) else None

    def may_hand_out(self, caller: Caller) -> bool:
        """Whether an agent that came with this key gets one of its own."""
        known = self._people.by_key_id.get(caller.key_id)
        return caller.scope == ALL or (known is not None and known.kind == api_keys.NODES)

    def signed(self, kind: Kind, token: str) -> tuple[Caller, list[Any]]:
        """Who asked for an address, if their key is still good, and what for."""
        key_id, claim = self.addresses.read(kind, token)
        caller = self.by_key_id(key_id)
        if caller is None:
            raise BadAddress("the key that asked for this address has been revoked")
        return caller, claim

    def may_write(self, caller: Caller, entity: str) -> bool:
        return may_write(caller, entity, self._people.owned)

    async def change_people(
        self,
        change: Callable[Concatenate[sqlite3.Connection, Arguments], Result],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        """Make a change of users, keys or teams; it holds from the moment this comes back."""

        def both(connection: sqlite3.Connection) -> tuple[Result, people.People]:
            return change(connection, *args, **kwargs), people.load(connection)

        # Changes come back in the order in which they were made: the last one stays.
        result, self._people = await self.write(both)
        return result

    async def add_key(self, user: str, wanted: api_keys.Wanted) -> dict[str, Any]:
        """Make a key, and tell it: the one time that it is told."""
        key, now = new_key(), time.time()

        def change(connection: sqlite3.Connection) -> tuple[dict[str, Any], people.People]:
            made = people.add_key(connection, user, key, wanted, now)
            return made, people.load(connection, api_keys.hash_key(key))

        # Only this one is loaded: agents come by the hundred.
        made, loaded = await self.write(change)
        self._people.add(loaded.keys)
        return {**made, "key": key}

    async def end_key(self, key_id: str, end: float) -> None:
        """Let a key that was handed out end then, whether it is used or not."""
        known = self._people.by_key_id.get(key_id)
        if known is not None and known.expires_at is not None:
            known.lifetime, known.expires_at = None, min(known.expires_at, end)
            await self.write(api_keys.end_soon, key_id, end)

    def node_key(self, before: str) -> str:
        """The key that agents on nodes find in the state folder."""
        fresh, now = new_key(), time.time()

        def change(connection: sqlite3.Connection) -> tuple[str, people.People]:
            key = api_keys.for_nodes(connection, before, fresh, now)
            return key, people.load(connection)

        key, self._people = self._database.write(change).result()
        return key

    def retire_keys(self, why: str, port: int | None = None) -> int:
        """Refuse keys that were handed out: at that port, or all; how many. See `api_keys`.

        Pages that were open then sent both halves of their sessions to that port: all end.
        """
        pages = self.sessions.all(time.time())

        def change(connection: sqlite3.Connection) -> tuple[int, people.People]:
            count = api_keys.retire(connection, why, time.time(), port=port)
            stored_sessions.end(connection, [session.hash for session in pages])
            return count, people.load(connection)

        count, self._people = self._database.write(change).result()
        self.sessions.close(pages)
        return count

    async def store_uses(self) -> None:
        """Write down when keys were last used. In memory until then: it is noted on each call."""
        uses = self._take_uses()
        if uses:
            await self.write(api_keys.note_uses, uses)
        visits = self.sessions.take_uses()
        if visits:
            await self.write(stored_sessions.note_uses, visits)
        await self.end_sessions(self.sessions.over(time.time()))

    async def open_session(self, session: Session) -> bool:
        """Log a browser in; False if the key behind it was revoked in the meantime."""
        if not await self.write(stored_sessions.add, session):
            return False
        await self.end_sessions(self.sessions.open(session))
        return True

    async def end_sessions(self, sessions: Sequence[Session]) -> None:
        """Refused from now on; and forgotten, when this comes back."""
        self.sessions.close(sessions)
        if sessions:
            await self.write(stored_sessions.end, [session.hash for session in sessions])

    async def keep_up_keys(self) -> None:
        """Note when keys were used; those of live runs go on, those that ended are forgotten."""
        await self.store_uses()
        if await self.write(api_keys.keep_up, time.time()):
            await self.change_people(lambda _connection: None)

    def _take_uses(self) -> dict[str, tuple[float, str, int | None]]:
        uses, self._uses = self._uses, {}
        return uses

    async def delete_run(self, caller: Caller, key: int, *, with_artifacts: bool = False) -> bool:
        """Delete a run: its rows, its files, its artifacts if wanted, and the room they took.

        Rows first, then files: cut short in between, the next start removes the files. What the run
        logged goes in slices before the run itself does; cut short there, it is shorter.
        """

        def delete(connection: sqlite3.Connection) -> tuple[bool, list[tuple[str, str]]]:
            freed = (
                artifact_deletion.delete_made_by(
                    connection, key, lambda entity: self.may_write(caller, entity)
                )
                if with_artifacts
                else []
            )
            return deletion.delete_run(connection, key, time.time()), freed

        await self.transfer(key, deletion.Empty(key))
        was_there, freed = await self.write(delete)
        if was_there:
            await asyncio.to_thread(self.uploads.remove_run, key)
            self.vacuum.note()
        await self.blobs.free(self, freed)
        return was_there


def new_key() -> str:
    """Forty letters and digits: the one form that every client version accepts."""
    return secrets.token_hex(20)


def _own(connection: sqlite3.Connection, key: str, now: float) -> people.People:
    people.add_owner(connection, key, _user_name(), now)
    api_keys.bridge(connection, now)
    return people.load(connection)


def _user_name() -> str:
    try:
        # A domain's name can stand before it.
        return getpass.getuser().translate(_NOT_IN_NAMES)
    except (KeyError, OSError):  # In a container, a user can be a mere number.
        return f"user{os.getuid()}"


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
