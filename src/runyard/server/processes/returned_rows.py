"""Rows that were put aside before a trial went on, and that its program does not log again.

They come back into the history, and what they said of each metric into the summary. The client that
goes on was told of neither: its own summaries lack what these rows said.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from sqlite3 import Connection
from typing import Any

from runyard.server.history.history import HISTORY, count_rows, put_rows
from runyard.server.history.row_summaries import summary_of_rows
from runyard.server.history.unrepeated import rows_left_aside
from runyard.server.processes import clients
from runyard.server.runs import runs
from runyard.server.store.sql import Row


def bring_back(db: Connection, key: int, lines: Sequence[str]) -> None:
    """Put rows behind those that the run has."""
    run = runs.by_key(db, key)
    if run is None or not lines:
        return
    summary: dict[str, Any] = json.loads(run["summary"])
    before = summary_of_rows(db, key, summary)
    put_rows(db, key, HISTORY, count_rows(db, key, HISTORY), lines)
    after = summary_of_rows(db, key, summary)
    # What the program put into the summary itself is not for rows to change.
    changed = {
        name: {"then": summary.get(name), "now": value}
        for name, value in after.items()
        if before.get(name) != value and summary.get(name) == before.get(name)
    }
    client = clients.newest_after(db, key, 0)
    if client is not None:
        changed = {**_unheard(client), **changed}
        clients.set_unheard(db, client, json.dumps(changed))
    runs.update(db, key, summary=json.dumps(_correct(summary, changed)))


def correct(db: Connection, client: Row, summary: str) -> str:
    """A client's summary, with what it was not told of and has not logged since."""
    client = clients.get(db, client)  # Rows may have come back a moment ago.
    if client["unheard"] is None:
        return summary
    return json.dumps(_correct(json.loads(summary), _unheard(client)))


def bring_back_at_end(db: Connection, trial: Row, run: int) -> None:
    """A trial has ended. One that went on and logged nothing had nothing left to log.

    Of one whose clients record to disk nothing is known before it is synced.
    """
    is_heard = clients.newest_after(db, run, 0) is not None
    has_logged = clients.have_logged(db, run, trial["clients"], HISTORY)
    if trial["attempt"] > 1 and is_heard and not has_logged:
        bring_back(db, run, rows_left_aside(db, run))


def _unheard(client: Row) -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = json.loads(client["unheard"] or "{}")
    return rows


def _correct(summary: dict[str, Any], changed: dict[str, dict[str, Any]]) -> dict[str, Any]:
    newer = {
        name: value["now"] for name, value in changed.items() if summary.get(name) == value["then"]
    }
    return {**summary, **newer}
