"""Ends of attempts, and of the trials that they were attempts of; and runs that are to stop."""

from __future__ import annotations

from sqlite3 import Connection

from runyard.server.processes import attempts
from runyard.server.runs import runs, states
from runyard.server.sweeps.ledger import settling, trials


def end_attempt(
    db: Connection,
    run: int,
    number: int,
    *,
    exit_code: int,
    ended_at: float,
    now: float,
    cause: str | None = None,
    saved: bool = False,
) -> None:
    """An attempt has ended. `cause` as in `runyard.end_causes`, where more is known than the code.

    Told again it changes nothing. Told when the trial has been settled, or is somebody else's, it
    corrects what is known of this attempt alone.
    """
    attempt = attempts.get(db, run, number)
    if attempt["exit_code"] is not None:
        return
    trial = trials.by_run(db, run)
    if trial is None:
        attempts.end(db, run, number, exit_code=exit_code, ended_at=ended_at, cause=cause)
        return
    # Nodes have clocks of their own.
    ended_at = max(attempt["started_at"], min(ended_at, now))
    is_open = trial["state"] == "running" or trial["lost"] is not None
    counts = is_open and trial["attempt"] == number
    attempts.end(
        db, run, number, exit_code=exit_code, ended_at=ended_at, cause=cause, speaks=counts
    )
    row = runs.by_key(db, run)
    if counts and row is not None:
        settling.settle_run(
            db, row, exit_code, now, attempt=number, cause=cause, ended_at=ended_at, saved=saved
        )
    elif attempt["ended_at"] is not None:
        settling.add_seconds(db, trial, attempt, ended_at - attempt["ended_at"])


def ask_to_stop(db: Connection, key: int, now: float) -> bool:
    """Ask a run to stop. One that has ended stays as it is. Says whether there is such a run."""
    row = runs.by_key(db, key)
    if row is None:
        return False
    if row["sweep"] is not None and settling.ask_to_end(db, row, "stopped", now):
        return True
    if row["state"] in states.ALIVE:
        runs.update(db, key, stop_asked=1)
    elif row["state"] == "pending":
        # Nobody is there to hear it; it does not start any more.
        runs.update(db, key, state="killed", ended_at=now)
    return True
