"""One GraphQL request: who asks, and the address that they reached us under."""

from __future__ import annotations

from dataclasses import dataclass

from runyard.server.tracker import Caller, Tracker


@dataclass(frozen=True)
class Request:
    tracker: Tracker
    caller: Caller
    base_url: str

    def entity(self, named: str | None) -> str:
        """Clients leave the entity out or empty where they mean their own."""
        return named or self.caller.name

    def may_write(self, entity: str) -> bool:  # noqa: ARG002
        """Whether the caller may change what belongs to an entity. Every change asks here."""
        return True
