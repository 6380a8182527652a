"""An attempt's end and its slot's next claim in one transaction: one wait for the disk, not two.

Only where the next trial follows from its number (`Plan.is_by_number`): a search that learns needs
the result first. What cannot be answered at once is not claimed; the agent then asks on its own.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any

from runyard.server.store.sql import Row
from runyard.server.sweeps.ledger import agents, claims, programs, sweeps
from runyard.server.sweeps.ledger.claims import Handed
from runyard.server.sweeps.ledger.new_trials import Claim
from runyard.server.sweeps.policy.fitting import Room
from runyard.server.sweeps.policy.rules import Rules
from runyard.server.sweeps.serving.claim_queues import ClaimQueues, Plan
from runyard.server.sweeps.serving.drawing import Drawing

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ended:
    """A trial after its attempt's end; and the next one, with the plan it belongs to."""

    trial: Row
    rules: Rules
    next: Handed | None = None
    plan: Plan | None = None


@dataclass(frozen=True)
class NextClaim:
    token: str
    room: Room | None


async def end_attempt(
    queues: ClaimQueues, agent: Row, wanted: NextClaim | None, /, **end: Any
) -> Ended:
    """Store the end, and hand out the next trial if one is wanted and can be had at once."""
    plan = None if wanted is None else queues.plan_by_number(agent["sweep"])
    queue = queues.queue(agent["sweep"])
    queue.with_ends += plan is not None
    try:
        ended = await queues.store.write(_end_and_claim, agent, plan, wanted, end, time.time())
    finally:
        queue.with_ends -= plan is not None
    queues.wake(agent["sweep"])
    return ended


def _end_and_claim(
    db: Connection,
    agent: Row,
    plan: Plan | None,
    wanted: NextClaim | None,
    end: dict[str, Any],
    now: float,
) -> Ended:
    trial = agents.end_attempt(db, agent["key"], **end, now=now)
    sweep = sweeps.get(db, trial["sweep"])
    rules = sweeps.rules_of(sweep)
    # A file that has changed is read by the queue.
    if plan is None or wanted is None or plan.text != sweep["text"]:
        return Ended(trial, rules)
    if wanted.room is not None and programs.look_for_room(db, sweep["key"], wanted.room):
        return Ended(trial, rules)
    return Ended(trial, rules, _claim(db, agent, sweep, plan, wanted.token, now), plan)


def _claim(
    db: Connection, agent: Row, sweep: Row, plan: Plan, token: str, now: float
) -> Handed | None:
    """The next trial. Whatever goes wrong here must not undo the end."""
    claim = Claim(agent["key"], agent["user"], agent["kind"], agent["host"], agent["pid"], token)
    db.execute("SAVEPOINT claiming")
    try:
        drawing = Drawing(plan.sweep, sweep["seed"])
        [handed] = claims.hand_out(db, sweep["key"], [claim], drawing, now).handed
    except Exception:
        log.exception("could not hand out a trial of sweep %d with an end", sweep["key"])
        db.execute("ROLLBACK TO claiming")
        handed = None
    db.execute("RELEASE claiming")
    return handed
