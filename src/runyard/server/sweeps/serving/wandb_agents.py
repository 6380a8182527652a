"""W&B's own agents: what a heartbeat comes to."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from runyard.server.sweeps.ledger import agents, leases, sweeps
from runyard.server.sweeps.ledger.claims import Handed
from runyard.server.sweeps.serving.quiet_period import Lull

if TYPE_CHECKING:
    from runyard.server.tracker import Tracker


@dataclass(frozen=True)
class Command:
    """The one thing that an agent is told: run, resume (it ran before), stop a run, or exit."""

    type: Literal["run", "resume", "stop", "exit"]
    run_id: str | None = None
    # As the client wants them: {name: {"value": ...}}.
    args: Mapping[str, Any] | None = None
    program: str | None = None


# How long an agent with nothing to do need not be looked after, if its sweep stays as it is.
_LONGEST_LULL = leases.LEASE_SECONDS / 2


async def heartbeat(tracker: Tracker, agent: int, alive: Collection[str]) -> Command | None:
    """A heartbeat of W&B's agent, with the ids of the runs that are alive in it.

    In one transaction: leases are renewed, and what it was given and is not alive any more is
    settled. Then, if nothing is alive, it is given the next trial, which is another transaction;
    cut off between the two, the next heartbeat goes on. A trial whose answer got lost is handed out
    again by the next heartbeat. Raises `NoAgent` where there is none.
    """
    now = time.time()
    desks = tracker.sweeps
    sweep: int = (await desks.agent(agent))["sweep"]
    lulls, changes = desks.lulls, desks.changes(sweep)
    known = lulls.get(agent)
    if known is not None and known.holds(alive, changes, now):
        return None
    if alive:
        until = await tracker.read(agents.quiet_until, agent, alive, now)
        if until > now:
            lulls[agent] = Lull(frozenset(alive), changes, until)
            return None
    heard = await tracker.write(agents.hear_stock, agent, alive, tracker.started_at, now)
    if heard.has_changed:
        desks.wake(sweep)
    if heard.stop is not None:
        return Command("stop", heard.stop.run_id)
    if not heard.is_free:
        return None
    if heard.sweep_state not in sweeps.OPEN:
        return Command("exit")
    found = None if heard.sweep_state == "paused" else await desks.claim(agent)
    if found is not None and found.handed is not None:
        row = await tracker.read(sweeps.get, sweep)
        return _command(found.handed, json.loads(row["config"]).get("program"))
    if found is not None and found.is_over:
        return Command("exit")
    if found is None or not found.has_more:
        lulls[agent] = Lull(frozenset(), changes, now + _LONGEST_LULL)
    return None


def _command(handed: Handed, program: str | None) -> Command:
    settings = json.loads(handed.trial["settings"])
    return Command(
        "resume" if handed.goes_on else "run",
        handed.trial["id"],
        {name: {"value": value} for name, value in settings.items()},
        program,
    )
