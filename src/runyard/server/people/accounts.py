"""Users, keys and sessions as the server keeps them in memory, and every change of them.

Each request asks for a key or a session, so both are looked up here and not in the database.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import secrets
import time
from collections.abc import Callable, Sequence
from sqlite3 import Connection
from typing import Any, Concatenate

from runyard.server.people import api_keys, people, permissions, service_accounts
from runyard.server.people import sessions as stored_sessions
from runyard.server.people.api_keys import Key
from runyard.server.people.permissions import ALL, Caller
from runyard.server.people.sessions import Codes, Session, Sessions
from runyard.server.people.signed_addresses import Addresses, BadAddress, Kind
from runyard.server.store.database import Database
from runyard.server.store.store import Arguments, Result, Store
from runyard.vocabulary import NOT_IN_PROJECTS


class Accounts:
    """Who may come in, and with what. Usable after `open`."""

    def __init__(self, store: Store, database: Database) -> None:
        self._store = store
        self._database = database
        self._people = people.People()
        self._uses: dict[str, tuple[float, str, int | None]] = {}
        self.own_key = ""
        # Where clients find us: keys that we hand out may be sent to whoever has this port later.
        self.port: int | None = None
        self.addresses: Addresses
        self.sessions: Sessions
        self.codes = Codes()
        self._service_keys: dict[tuple[int, str], str] = {}

    def open(self, key: str, port: int | None, secret: bytes) -> None:
        """Accept `key` as the owner's. `secret` signs addresses and sessions."""

        def change(db: Connection) -> people.People:
            now = time.time()
            people.add_owner(db, key, _user_name(), now)
            api_keys.bridge(db, now)
            return people.load(db)

        self.own_key, self.port = key, port
        self._people = self._database.write(change).result()
        self.addresses = Addresses(secret)
        self.sessions = Sessions(secret, self._database.read(stored_sessions.load).result())

    def close(self) -> None:
        """Write down when keys and sessions were last used."""
        with contextlib.suppress(Exception):  # For example a full disk: the times are not worth it.
            uses, visits = self._take_uses(), self.sessions.take_uses(at_once=True)
            self._database.write(lambda db: api_keys.note_uses(db, uses)).result()
            self._database.write(lambda db: stored_sessions.note_uses(db, visits)).result()

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

    def good_key(self, key_id: str) -> Key | None:
        """The key of this id, if it was given out and is still good."""
        known = self._people.by_key_id.get(key_id)
        return known if known is not None and known.is_good(time.time()) else None

    def by_key_id(self, key_id: str) -> Caller | None:
        key = self.good_key(key_id)
        return key.caller if key is not None else None

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
        return permissions.may_write(caller, entity, self._people.owned)

    async def change(
        self,
        change: Callable[Concatenate[Connection, Arguments], Result],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        """Make a change of users, keys or teams; it holds from the moment this comes back."""

        def both(db: Connection) -> tuple[Result, people.People]:
            return change(db, *args, **kwargs), people.load(db)

        # Changes come back in the order in which they were made: the last one stays.
        result, self._people = await self._store.write(both)
        return result

    async def add_key(self, user: str, wanted: api_keys.Wanted) -> dict[str, Any]:
        """Make a key; the answer is the only one that ever shows it."""
        key, now = new_key(), time.time()

        def change(db: Connection) -> tuple[dict[str, Any], people.People]:
            made = people.add_key(db, user, key, wanted, now)
            return made, people.load(db, api_keys.hash_key(key))

        # Only this one is loaded: agents come by the hundred.
        made, loaded = await self._store.write(change)
        self._people.add(loaded.keys)
        return {**made, "key": key}

    async def add_service_account(self, team: str, purpose: str, caller: Caller) -> str:
        """Its name. `take_service_key` tells its key."""
        key = new_key()
        name = await self.change(service_accounts.add, team, purpose, key, caller, time.time())
        self._service_keys[caller.key, name] = key
        return name

    def take_service_key(self, caller: Caller, name: str) -> str | None:
        """The key of an account that the caller has just made: once."""
        return self._service_keys.pop((caller.key, name), None)

    async def end_key(self, key_id: str, end: float) -> None:
        """Let a key that was handed out end then, whether it is used or not."""
        known = self._people.by_key_id.get(key_id)
        if known is not None and known.expires_at is not None:
            known.lifetime, known.expires_at = None, min(known.expires_at, end)
            await self._store.write(api_keys.end_soon, key_id, end)

    def node_key(self, before: str) -> str:
        """The key that agents on nodes find in the state folder."""
        fresh, now = new_key(), time.time()

        def change(db: Connection) -> tuple[str, people.People]:
            return api_keys.for_nodes(db, before, fresh, now), people.load(db)

        key, self._people = self._database.write(change).result()
        return key

    def retire_keys(self, why: str, port: int | None = None) -> int:
        """Refuse keys that were handed out: at that port, or all; how many. See `api_keys`.

        Pages that were open then sent both halves of their sessions to that port: all end.
        """
        pages = self.sessions.all(time.time())

        def change(db: Connection) -> tuple[int, people.People]:
            count = api_keys.retire(db, why, time.time(), port=port)
            stored_sessions.end(db, [session.hash for session in pages])
            return count, people.load(db)

        count, self._people = self._database.write(change).result()
        self.sessions.close(pages)
        return count

    async def store_uses(self) -> None:
        """Write down when keys were last used. In memory until then: it is noted on each call."""
        uses = self._take_uses()
        if uses:
            await self._store.write(api_keys.note_uses, uses)
        visits = self.sessions.take_uses()
        if visits:
            await self._store.write(stored_sessions.note_uses, visits)
        await self.end_sessions(self.sessions.over(time.time()))

    async def open_session(self, session: Session) -> bool:
        """Log a browser in; False if the key behind it was revoked in the meantime."""
        if not await self._store.write(stored_sessions.add, session):
            return False
        await self.end_sessions(self.sessions.open(session))
        return True

    async def end_sessions(self, sessions: Sequence[Session]) -> None:
        """Refused from now on; and forgotten, when this comes back."""
        self.sessions.close(sessions)
        if sessions:
            await self._store.write(stored_sessions.end, [session.hash for session in sessions])

    async def keep_up_keys(self) -> None:
        """Note when keys were used; those of live runs go on, those that ended are forgotten."""
        await self.store_uses()
        if await self._store.write(api_keys.keep_up, time.time()):
            await self.change(lambda _db: None)

    def _take_uses(self) -> dict[str, tuple[float, str, int | None]]:
        uses, self._uses = self._uses, {}
        return uses


def new_key() -> str:
    """Forty letters and digits: the one form that every client version accepts."""
    return secrets.token_hex(20)


def _user_name() -> str:
    try:
        # A domain's name can stand before it.
        return getpass.getuser().translate(dict.fromkeys(map(ord, NOT_IN_PROJECTS), "-"))
    except (KeyError, OSError):  # In a container, a user can be a mere number.
        return f"user{os.getuid()}"
