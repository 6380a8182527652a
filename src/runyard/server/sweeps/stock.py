"""W&B's own agents: what a heartbeat comes to."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from runyard.server.store import agents, sweeps

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


async def heartbeat(tracker: Tracker, agent: int, alive: Collection[str]) -> Command | None:
    """A heartbeat of W&B's agent, with the ids of the runs that are alive in it.

    In one transaction: leases are renewed, and what it was given and is not alive any more is
    settled. Then, if nothing is alive, it is given the next trial, which is another transaction;
    cut off between the two, the next heartbeat goes on. A trial whose answer got lost is handed out
    again by the next heartbeat. Raises `NoAgent` where there is none.
    """
    now = time.time()
    if await tracker.read(agents.is_quiet, agent, alive, now):
        return None
    heard = await tracker.write(agents.hear_stock, agent, alive, tracker.started_at, now)
    tracker.sweeps.wake(heard.sweep)
    if heard.stop is not None:
        return Command("stop", heard.stop.run_id)
    if not heard.is_free:
        return None
    if heard.sweep_state not in sweeps.OPEN:
        return Command("exit")
    if heard.sweep_state == "paused":
        return None
    found = await tracker.sweeps.claim(agent)
    if found.handed is None:
        return Command("exit") if found.is_over else None
    row = await tracker.read(sweeps.get, heard.sweep)
    settings = json.loads(found.handed.trial["settings"])
    return Command(
        "resume" if found.handed.goes_on else "run",
        found.handed.trial["id"],
        {name: {"value": value} for name, value in settings.items()},
        json.loads(row["config"]).get("program"),
    )
