"""Runs that somebody asked to stop: their clients hear of it, and they end as killed."""

from __future__ import annotations

import sqlite3

from runyard.server.runs import runs, states
from runyard.server.sweeps.ledger import settling


def ask_to_stop(connection: sqlite3.Connection, key: int, now: float) -> bool:
    """Ask a run to stop. One that has ended stays as it is. Says whether there is such a run."""
    row = runs.by_key(connection, key)
    if row is None:
        return False
    if row["sweep"] is not None and settling.ask_to_end(connection, row, "stopped", now):
        return True
    if row["state"] in states.ALIVE:
        runs.update(connection, key, stop_asked=1)
    elif row["state"] == "pending":
        # Nobody is there to hear it; it does not start any more.
        runs.update(connection, key, state="killed", ended_at=now)
    return True
