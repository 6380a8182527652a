"""Trials that nobody has: they end, go on, or come back into the queue."""

from __future__ import annotations

from sqlite3 import Connection

from runyard.server.runs import runs
from runyard.server.store.sql import Row
from runyard.server.sweeps.ledger import trials


def end_waiting(db: Connection, trial: Row, state: str, now: float) -> None:
    """A trial that is not at work does not go on any more."""
    transition = trials.move(
        db,
        trial,
        "stop waiting" if state == "stopped" else "cancel waiting",
        cause=state,
        ended=trial["ended"] or next_rank(db, trial["sweep"]),
        ended_at=trial["ended_at"] or now,
    )
    if trial["run"] is not None:
        runs.update(
            db,
            trial["run"],
            state=transition.run,
            # Whatever is told of its last attempt yet.
            stop_asked=1,
            ended_at=trial["ended_at"] or now,
        )


def promote(db: Connection, sweep: int, number: int) -> str:
    """A paused trial goes on, before all others. The state that it had."""
    trial = trials.get(db, sweep, number)
    if trial["state"] == "paused":
        place = trials.place_in_queue("head", next_rank(db, sweep))
        trials.move(db, trial, "promote", place=place, ended=None)
    state: str = trial["state"]
    return state


def return_to_queue(db: Connection, trial: Row, **columns: object) -> None:
    """A trial that had ended is to be run once more."""
    place = trials.place_in_queue("tail", next_rank(db, trial["sweep"]))
    trials.move(db, trial, "retry", place=place, tries="{}", ended=None, score=None, **columns)


def next_rank(db: Connection, sweep: int) -> int:
    """Counts ends and returns, in their order."""
    db.execute("UPDATE sweeps SET sequence = sequence + 1 WHERE key = ?", (sweep,))
    found: int = db.execute("SELECT sequence FROM sweeps WHERE key = ?", (sweep,)).fetchone()[0]
    return found
