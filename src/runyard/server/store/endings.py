"""The end of an attempt, and of the trial that it was an attempt of: one change."""

from __future__ import annotations

import sqlite3

from runyard.server.store import attempts, runs, settling


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
    """An attempt has ended. `cause` as in `ledger/causes`, where more is known than the code."""
    speaks = attempts.end(
        connection, run, number, exit_code=exit_code, ended_at=ended_at, cause=cause
    )
    row = runs.by_key(connection, run)
    if speaks and row is not None and row["sweep"] is not None:
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
