"""Sweeps whose trials a controller on somebody's machine draws: what it asks for is done here."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from sqlite3 import Connection
from typing import Any

from runyard.server.runs import runs
from runyard.server.store.sql import Row
from runyard.server.sweeps.ledger import claims, settling, sweep_changes, sweeps, trials
from runyard.server.sweeps.ledger.trials import IsTaken
from runyard.server.sweeps.policy.controller_requests import Asked

Name = Callable[[Mapping[str, Any], IsTaken], str]


def obey(db: Connection, key: int, text: str, asked: Asked, name: Name, now: float) -> None:
    """Keep what a controller says, put its settings into the queue, stop what it wants stopped."""
    sweep_changes.keep_controller(db, key, text, None, now)
    sweep = sweeps.get(db, key)
    is_taken = partial(trials.is_taken, db, key)
    for mark, settings in asked.settings:
        # Counted anew each time: a trial before it may have come into being just now.
        row = sweeps.get(db, key)
        claims.enqueue(db, row, settings, name(settings, is_taken), mark, now)
    for run_id in asked.stops:
        run = runs.by_path(db, sweep["entity"], sweep["project_name"], run_id)
        if run is not None and run["sweep"] == sweep["id"]:
            settling.ask_to_end(db, run, "stopped", now)
    settling.conclude(db, key, now)


def scheduled(db: Connection, sweep: Row) -> str:
    """Which run became of what the controller asked for, as it reads it."""
    rows = db.execute(
        "SELECT mark, id FROM trials WHERE sweep = ? AND mark IS NOT NULL ORDER BY number",
        (sweep["key"],),
    )
    return json.dumps({"scheduled": [{"id": row["mark"], "runid": row["id"]} for row in rows]})
