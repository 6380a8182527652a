"""Agents with nothing to hear.

A thousand agents beat two hundred times a second, and nearly always there is nothing to say and
nothing to write: that is known without a look at the store.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass

from runyard.server.sweeps.ledger import leases


@dataclass(frozen=True)
class QuietPeriod:
    """An agent that was told nothing, and will be told nothing while this holds."""

    # What it said is alive in it.
    alive: frozenset[Hashable]
    # How often its sweep had changed.
    changes: int
    until: float

    def holds(self, alive: Collection[Hashable], changes: int, now: float) -> bool:
        # One that is longer than a lease was set while the clock was ahead.
        is_now = now < self.until <= now + leases.LEASE_SECONDS
        return changes == self.changes and is_now and self.alive == set(alive)
