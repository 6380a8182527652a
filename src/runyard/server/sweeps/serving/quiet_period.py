"""Agents with nothing to hear.

A thousand agents beat two hundred times a second, and nearly always there is nothing to say and
nothing to write: that is known without a look at the store.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runyard.server.sweeps.ledger import agents, leases
from runyard.server.sweeps.ledger.agents import Renewed

if TYPE_CHECKING:
    from runyard.server.tracker import Tracker


@dataclass(frozen=True)
class Lull:
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


async def renew(
    tracker: Tracker,
    agent: int,
    sweep: int,
    running: Sequence[tuple[int, int]],
    *,
    slots: int | None,
    usage: Mapping[tuple[int, int], str],
) -> Renewed:
    """An agent of ours says what it has, each trial with its attempt. What of it is to end.

    `slots` and `usage` are news, and are written down.
    """
    now = time.time()
    desks = tracker.sweeps
    changes = desks.changes(sweep)
    known = desks.lulls.get(agent)
    has_news = slots is not None or bool(usage)
    if not has_news and known is not None and known.holds(running, changes, now):
        return Renewed((), known.until)
    renewed = await tracker.write(agents.renew, agent, running, now, slots=slots, usage=usage)
    if not renewed.stops and not renewed.over:
        desks.lulls[agent] = Lull(frozenset(running), changes, renewed.quiet_until)
    return renewed
