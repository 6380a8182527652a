"""Leases: for how long an agent has a trial before it must be heard again.

A lease is renewed by the agent, and by the run's own client when it logs. One that runs out is a
trial that went with its node: it is settled once, and waits at the head of the queue.
"""

from __future__ import annotations

import logging
import os
from sqlite3 import Connection

from runyard.server.processes import attempts
from runyard.server.runs import runs
from runyard.server.store.sql import Row, exists
from runyard.server.sweeps.ledger import settling, trials

log = logging.getLogger(__name__)

# Renewed every third of it, or so: a few words may get lost.
LEASE_SECONDS = float(os.environ.get("RUNYARD_LEASE_SECONDS") or 60.0)

# A lease of which this much is left need not be written anew.
FRESH = 0.75


def extend(db: Connection, trial: Row, now: float) -> float:
    """A running trial was heard of. Written only where it makes a difference. Its new end."""
    held: float = trial["lease"] or 0.0
    # One that ends later than a lease can was taken while the clock was ahead.
    if now + LEASE_SECONDS * FRESH < held <= now + LEASE_SECONDS and trial["is_seen"]:
        return held
    lease = now + LEASE_SECONDS
    trials.update(db, trial, lease=lease, is_seen=1)
    if trial["run"] is not None:
        runs.update(db, trial["run"], heartbeat_at=now)
    return lease


def are_silent(db: Connection, now: float) -> bool:
    return exists(db, "SELECT 1 FROM trials WHERE state = 'running' AND lease < ? LIMIT 1", (now,))


def lose_silent(db: Connection, now: float) -> set[int]:
    """Settle every trial whose lease has run out. The sweeps that have changed.

    Each by itself: one that cannot be settled keeps no other waiting.
    """
    silent = db.execute(
        "SELECT * FROM trials WHERE state = 'running' AND lease < ?", (now,)
    ).fetchall()
    changed = set()
    for trial in silent:
        db.execute("SAVEPOINT losing")
        try:
            settling.lose(db, trial, now)
            changed.add(trial["sweep"])
        except Exception:
            log.exception("could not settle trial %d of sweep %d", trial["number"], trial["sweep"])
            db.execute("ROLLBACK TO losing")
        finally:
            db.execute("RELEASE losing")
    return changed


def extend_all(db: Connection, now: float) -> None:
    """Nobody could reach us until now, or the clock was set: every lease begins anew.

    What was heard in the future was heard just now.
    """
    db.execute("UPDATE trials SET lease = ? WHERE state = 'running'", (now + LEASE_SECONDS,))
    db.execute("UPDATE agents SET heard_at = :now WHERE heard_at > :now", {"now": now})
    db.execute(
        "UPDATE runs SET heartbeat_at = :now "
        "WHERE state IN ('running', 'preempting') AND heartbeat_at > :now",
        {"now": now},
    )


def hear_console(db: Connection, run: int, number: int, start: int, data: bytes, now: float) -> int:
    """Who stands beside an attempt sends its console: a sign of life. How much is stored now.

    Of a trial's attempt it is the trial's: one that is somebody else's now does not live by it.
    """
    trial = trials.by_run(db, run)
    if trial is None:
        return attempts.append_console(db, run, number, start, data, now)
    stored = attempts.append_console(db, run, number, start, data, None)
    attempt = attempts.get(db, run, number)
    if trial["attempt"] == number and attempt["exit_code"] is None:
        trial = settling.take_back(db, trial, now)
        if trial["state"] == "running":
            extend(db, trial, now)
    return stored


def hear_client(
    db: Connection, run: Row, now: float, *, ended: bool = False, exit_code: int = 0
) -> Row | None:
    """The client of a run has spoken, or said its last word. The trial that the run is, if any.

    One that was given up as lost, and is nobody else's yet, is alive after all.
    """
    trial = trials.by_run(db, run["key"])
    if trial is None:
        return None
    if ended:
        return settling.settle_run(db, run, exit_code, now)
    trial = settling.take_back(db, trial, now)
    if trial["state"] == "running":
        extend(db, trial, now)
    return trial
