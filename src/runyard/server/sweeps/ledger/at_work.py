"""Trials at work: for how long, and how long they say that they still take."""

from __future__ import annotations

from sqlite3 import Connection

from runyard.server.store import json_text
from runyard.server.sweeps.policy.estimates import AtWork

# What `runyard.train` puts into a run's summary.
_LEFT = "progress/seconds_left"


def at_work(db: Connection, sweep: int, now: float) -> dict[int, AtWork]:
    """By the trial's number."""
    rows = db.execute(
        "SELECT trials.number, trials.began_at, trials.seconds, runs.heartbeat_at, "
        "CASE WHEN instr(runs.summary, :left) THEN runs.summary END AS summary FROM trials "
        "LEFT JOIN runs ON runs.key = trials.run "
        "WHERE trials.sweep = :sweep AND trials.state = 'running'",
        {"sweep": sweep, "left": _LEFT},
    ).fetchall()
    trials = {}
    for row in rows:
        began = row["began_at"] or now
        left = json_text.parse(row["summary"]).get(_LEFT) if row["summary"] else None
        left = left if isinstance(left, int | float) else None
        # Told by an attempt before this one, it says nothing; since it was told, time went by.
        heard = row["heartbeat_at"] or now
        left = None if left is None or heard < began else max(0.0, left - (now - heard))
        trials[row["number"]] = AtWork(row["seconds"] + now - began, left)
    return trials
