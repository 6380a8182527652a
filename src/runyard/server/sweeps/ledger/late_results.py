"""Results of trials that have ended, when more of what they logged comes.

A client is cut off and heard again, or a trial logs to disk and is synced after its end.
"""

from __future__ import annotations

import json
from sqlite3 import Connection

from runyard.server.runs import runs
from runyard.server.sweeps.ledger import settling, sweeps, trials
from runyard.server.sweeps.ledger.measures import measure, result_columns
from runyard.vocabulary import RESULT_STATES


def measure_again(db: Connection, key: int, now: float) -> None:
    """A run has new rows, or a new summary. If it is a trial that has ended, its result follows.

    With another result it gets a new rank among the ends: by that the search hears of it.
    """
    trial = trials.ended_by_run(db, key)
    run = None if trial is None else runs.by_key(db, key)
    if trial is None or run is None:
        return
    rules = sweeps.rules_of(sweeps.get(db, trial["sweep"]))
    measured = measure(db, run, rules)
    if measured == json.loads(trial["measured"] or "{}"):
        return
    columns = result_columns(db, trial["sweep"], trial["state"], measured, rules)
    trials.update(db, trial, **columns)
    if trial["state"] in RESULT_STATES and rules.has_target(measured):
        sweeps.update(db, trial["sweep"], now, has_target=1)
        settling.conclude(db, trial["sweep"], now)
