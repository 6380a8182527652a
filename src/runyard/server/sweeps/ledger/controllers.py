"""Sweeps whose trials a controller on somebody's machine draws: what it asks for is done here."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from runyard.server.runs import runs
from runyard.server.store.sql import Row
from runyard.server.sweeps.ledger import claims, settling, sweep_changes, sweeps, trials
from runyard.server.sweeps.ledger.trials import IsTaken
from runyard.server.sweeps.policy.controller_requests import Asked

Name = Callable[[Mapping[str, Any], IsTaken], str]


def obey(
    connection: sqlite3.Connection, key: int, text: str, asked: Asked, name: Name, now: float
) -> None:
    """Keep what a controller says, put its settings into the queue, stop what it wants stopped."""
    sweep_changes.keep_controller(connection, key, text, None, now)
    sweep = sweeps.get(connection, key)
    is_taken = partial(trials.is_taken, connection, key)
    for mark, settings in asked.settings:
        # Counted anew each time: a trial before it may have come into being just now.
        row = sweeps.get(connection, key)
        claims.enqueue(connection, row, settings, name(settings, is_taken), mark, now)
    for run_id in asked.stops:
        run = runs.by_path(connection, sweep["entity"], sweep["project_name"], run_id)
        if run is not None and run["sweep"] == sweep["id"]:
            settling.ask_to_end(connection, run, "stopped", now)
    settling.conclude(connection, key, now)


def scheduled(connection: sqlite3.Connection, sweep: Row) -> str:
    """Which run became of what the controller asked for, as it reads it."""
    rows = connection.execute(
        "SELECT mark, id FROM trials WHERE sweep = ? AND mark IS NOT NULL ORDER BY number",
        (sweep["key"],),
    )
    return json.dumps({"scheduled": [{"id": row["mark"], "runid": row["id"]} for row in rows]})
