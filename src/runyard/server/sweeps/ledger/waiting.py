"""Trials that nobody has: they end, go on, or come back into the queue."""

from __future__ import annotations

import sqlite3

from runyard.server.runs import runs
from runyard.server.store.sql import Row
from runyard.server.sweeps.ledger import trials


def end_waiting(connection: sqlite3.Connection, trial: Row, state: str, now: float) -> None:
    """A trial that is not at work does not go on any more."""
    transition = trials.move(
        connection,
        trial,
        "stop waiting" if state == "stopped" else "cancel waiting",
        cause=state,
        ended=trial["ended"] or next_rank(connection, trial["sweep"]),
        ended_at=trial["ended_at"] or now,
    )
    if trial["run"] is not None:
        runs.update(
            connection,
            trial["run"],
            state=transition.run,
            # Whatever is told of its last attempt yet.
            stop_asked=1,
            ended_at=trial["ended_at"] or now,
        )


def promote(connection: sqlite3.Connection, sweep: int, number: int) -> str:
    """A paused trial goes on, before all others. The state that it had."""
    trial = trials.get(connection, sweep, number)
    if trial["state"] == "paused":
        place = trials.place_in_queue("head", next_rank(connection, sweep))
        trials.move(connection, trial, "promote", place=place, ended=None)
    state: str = trial["state"]
    return state


def return_to_queue(connection: sqlite3.Connection, trial: Row, **columns: object) -> None:
    """A trial that had ended is to be run once more."""
    place = trials.place_in_queue("tail", next_rank(connection, trial["sweep"]))
    trials.move(
        connection, trial, "retry", place=place, tries="{}", ended=None, score=None, **columns
    )


def next_rank(connection: sqlite3.Connection, sweep: int) -> int:
    """Counts ends and returns, in their order."""
    connection.execute("UPDATE sweeps SET sequence = sequence + 1 WHERE key = ?", (sweep,))
    found: int = connection.execute(
        "SELECT sequence FROM sweeps WHERE key = ?", (sweep,)
    ).fetchone()[0]
    return found
