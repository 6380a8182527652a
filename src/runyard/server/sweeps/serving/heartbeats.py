"""What a heartbeat comes to: of our own agents, and of W&B's."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from runyard.server.sweeps.ledger import agents, leases, sweeps
from runyard.server.sweeps.ledger.agents import Renewed
from runyard.server.sweeps.ledger.claims import Handed
from runyard.server.sweeps.serving.claim_queues import ClaimQueues
from runyard.server.sweeps.serving.quiet_period import QuietPeriod
from runyard.vocabulary import OPEN_STATES


@dataclass(frozen=True)
class Command:
    """The one thing that an agent is told: run, resume (it ran before), stop a run, or exit."""

    type: Literal["run", "resume", "stop", "exit"]
    run_id: str | None = None
    # As the client wants them: {name: {"value": ...}}.
    args: Mapping[str, Any] | None = None
    program: str | None = None


# How long an agent with nothing to do need not be looked after, if its sweep stays as it is.
_LONGEST_QUIET = leases.LEASE_SECONDS / 2


async def renew(
    queues: ClaimQueues,
    agent: int,
    sweep: int,
    running: Sequence[tuple[int, int]],
    *,
    slots: int | None,
    packing: str | None,
    usage: Mapping[tuple[int, int], str],
) -> Renewed:
    """An agent of ours says what it has, each trial with its attempt. What of it is to end.

    `slots`, `packing` and `usage` are news, and are written down.
    """
    now = time.time()
    changes = queues.changes(sweep)
    known = queues.quiet_periods.get(agent)
    has_news = slots is not None or packing is not None or bool(usage)
    if not has_news and known is not None and known.holds(running, changes, now):
        return Renewed((), known.until)
    renewed = await queues.store.write(
        agents.renew, agent, running, now, slots=slots, packing=packing, usage=usage
    )
    if not renewed.stops and not renewed.over:
        queues.quiet_periods[agent] = QuietPeriod(frozenset(running), changes, renewed.quiet_until)
    return renewed


async def heartbeat(
    queues: ClaimQueues, agent: int, alive: Collection[str], started_at: float
) -> Command | None:
    """A heartbeat of W&B's agent, with the ids of the runs that are alive in it.

    In one transaction: leases are renewed, and what it was given and is not alive any more is
    settled. Then, if nothing is alive, it is given the next trial, which is another transaction;
    cut off between the two, the next heartbeat goes on. A trial whose answer got lost is handed out
    again by the next heartbeat. `started_at` is the server's start. Raises `NoAgent` where there is
    no such agent.
    """
    now = time.time()
    sweep: int = (await queues.agent(agent))["sweep"]
    quiet_periods, changes = queues.quiet_periods, queues.changes(sweep)
    known = quiet_periods.get(agent)
    if known is not None and known.holds(alive, changes, now):
        return None
    if alive:
        until = await queues.store.read(agents.quiet_until, agent, alive, now)
        if until > now:
            quiet_periods[agent] = QuietPeriod(frozenset(alive), changes, until)
            return None
    heard = await queues.store.write(agents.hear_stock, agent, alive, started_at, now)
    if heard.has_changed:
        queues.wake(sweep)
    if heard.stop is not None:
        return Command("stop", heard.stop.run_id)
    if not heard.is_free:
        return None
    if heard.sweep_state not in OPEN_STATES:
        return Command("exit")
    claim = None if heard.sweep_state == "paused" else await queues.claim(agent)
    if claim is not None and claim.handed is not None:
        row = await queues.store.read(sweeps.get, sweep)
        return _command(claim.handed, json.loads(row["config"]).get("program"))
    if claim is not None and claim.is_over:
        return Command("exit")
    if claim is None or not claim.has_more:
        quiet_periods[agent] = QuietPeriod(frozenset(), changes, now + _LONGEST_QUIET)
    return None


def _command(handed: Handed, program: str | None) -> Command:
    settings = json.loads(handed.trial["settings"])
    return Command(
        "resume" if handed.goes_on else "run",
        handed.trial["id"],
        {name: {"value": value} for name, value in settings.items()},
        program,
    )
