"""One GraphQL request: who asks, and the address that they reached us under."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from runyard.server.addresses import Kind
from runyard.server.permissions import Caller, may_read
from runyard.server.tracker import Tracker


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
        return self.tracker.addresses.url(self.base_url, kind, self.caller.key_id, *claim)

    def may_read(self, entity: str) -> bool:
        return may_read(self.caller, entity)

    def may_write(self, entity: str) -> bool:
        return self.tracker.may_write(self.caller, entity)
