"""The end of an attempt, and of the trial that it was an attempt of: one change."""

from __future__ import annotations

import sqlite3

from runyard.server.processes import attempts
from runyard.server.runs import runs
from runyard.server.sweeps.ledger import settling, trials


def end_attempt(
    connection: sqlite3.Connection,
    run: int,
    number: int,
    *,
    exit_code: int,
    ended_at: float,
    now: float,
    cause: str | None = None,
    saved: bool = False,
) -> None:
    """An attempt has ended. `cause` as in `sweeps/policy/causes`, where more is known than the code.

    Told again it changes nothing. Told when the trial has been settled, or is somebody else's, it
    corrects what is known of this attempt alone.
    """
    attempt = attempts.get(connection, run, number)
    if attempt["exit_code"] is not None:
        return
    trial = trials.by_run(connection, run)
    if trial is None:
        attempts.end(connection, run, number, exit_code=exit_code, ended_at=ended_at, cause=cause)
        return
    # Nodes have clocks of their own.
    ended_at = max(attempt["started_at"], min(ended_at, now))
    is_open = trial["state"] == "running" or trial["lost"] is not None
    counts = is_open and trial["attempt"] == number
    attempts.end(
        connection,
        run,
        number,
        exit_code=exit_code,
        ended_at=ended_at,
        cause=cause,
        speaks=counts,
    )
    row = runs.by_key(connection, run)
    if counts and row is not None:
        settling.settle_run(
            connection,
            row,
            exit_code,
            now,
            attempt=number,
            cause=cause,
            ended_at=ended_at,
            saved=saved,
        )
    elif attempt["ended_at"] is not None:
        settling.add_seconds(connection, trial, ended_at - attempt["ended_at"])
