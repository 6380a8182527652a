"""One GraphQL request: who asks, and the address that they reached us under."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from runyard.server.artifacts.visibility import Entities
from runyard.server.people.permissions import Caller, may_read, readable
from runyard.server.people.signed_addresses import Kind
from runyard.server.store.sql import Row
from runyard.server.tracker import Tracker

Load: TypeAlias = Callable[[sqlite3.Connection, int, Entities], Row | None]


@dataclass(frozen=True)
class Request:
    tracker: Tracker
    caller: Caller
    base_url: str
    # In shared mode: which of a run's writers asks.
    writer: str = ""

    def entity(self, named: str | None) -> str:
        """Clients leave the entity out or empty where they mean their own."""
        return named or self.caller.name

    def address(self, kind: Kind, *claim: Any) -> str:
        """An address that needs no key, as long as the caller's own is good."""
        return self.tracker.accounts.addresses.url(self.base_url, kind, self.caller.key_id, *claim)

    async def see(self, load: Load, key: int | None) -> Row | None:
        """An object of `artifacts.visibility` by its key, if it is there for the caller."""
        if key is None:
            return None
        return await self.tracker.read(load, key, readable(self.caller))

    def may_read(self, entity: str) -> bool:
        return may_read(self.caller, entity)

    def may_write(self, entity: str) -> bool:
        return self.tracker.accounts.may_write(self.caller, entity)
