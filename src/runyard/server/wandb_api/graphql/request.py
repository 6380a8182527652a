"""One GraphQL request: who asks, under which address they reached us, and what they may have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any, TypeAlias

from runyard.server.artifacts import visibility
from runyard.server.artifacts.visibility import Entities
from runyard.server.people.permissions import Caller, may_read, readable
from runyard.server.people.signed_addresses import Kind
from runyard.server.store.sql import Row
from runyard.server.tracker import Tracker

Source = Mapping[str, Any]


class Refusal(Exception):
    """The client asked for something that cannot be: answered in `errors`, never retried."""


Load: TypeAlias = Callable[[Connection, int, Entities], Row | None]


@dataclass(frozen=True)
class Request:
    tracker: Tracker
    caller: Caller
    base_url: str
    # In shared mode: which of a run's writers asks.
    writer: str = ""
    # The client's own name and release, and where it asks from.
    agent: str = ""
    host: str = ""
    operation: str = ""

    def entity(self, arguments: Mapping[str, Any], name: str = "entityName") -> str:
        """Clients leave the entity out or empty where they mean their own."""
        entity = arguments.get(name)
        if entity is not None and not isinstance(entity, str):
            raise Refusal(f"{name} is not a text")
        return entity or self.caller.name

    def address(self, kind: Kind, *claim: Any) -> str:
        """An address that needs no key, as long as the caller's own is good."""
        return self.tracker.accounts.addresses.url(self.base_url, kind, self.caller.key_id, *claim)

    def reads(self, question: Callable[..., Any], *args: Any) -> Callable[[Any], Any]:
        """A field without arguments whose value one read gives."""
        return lambda _arguments: self.tracker.read(question, *args)

    async def see(self, load: Load, key: int | None) -> Row | None:
        """An object of `artifacts.visibility` by its key, if it is there for the caller."""
        if key is None:
            return None
        return await self.tracker.read(load, key, readable(self.caller))

    def may_read(self, entity: str) -> bool:
        return may_read(self.caller, entity)

    def may_write(self, entity: str) -> bool:
        return self.tracker.accounts.may_write(self.caller, entity)


async def own_run(request: Request, key: int | None) -> Row:
    row = await request.see(visibility.run, key)
    if row is None:
        raise Refusal("there is no such run any more")
    must_write(request, row["entity"])
    return row


async def readable_artifact(request: Request, key: int | None) -> Row:
    row = await request.see(visibility.artifact, key)
    if row is None:
        raise Refusal("there is no such artifact any more")
    return row


async def own_artifact(request: Request, key: int | None) -> Row:
    row = await readable_artifact(request, key)
    must_write(request, row["entity"])
    return row


async def own_collection(request: Request, key: int | None) -> Row:
    row = await request.see(visibility.collection, key)
    if row is None:
        raise Refusal("there is no such collection any more")
    must_write(request, row["entity"])
    return row


def must_write(request: Request, entity: str) -> None:
    if not request.may_write(entity):
        raise Refusal(f"{request.caller.name!r} may not change what belongs to {entity!r}")
