"""Before a trial goes on from a checkpoint, its run's history ends there."""

from __future__ import annotations

import time
from collections.abc import Sequence
from sqlite3 import Connection

import numpy as np

from runyard.server.history.archives import Flags, Rewind, Superseded
from runyard.server.history.columns import Numbers
from runyard.server.history.history import HISTORY
from runyard.server.history.merging import Merge
from runyard.server.history.unrepeated import unrepeated_rows
from runyard.server.processes import returned_rows
from runyard.server.runs import runs
from runyard.server.store.store import Store
from runyard.server.sweeps.ledger import agents

_ROWS_LOOKED_AT = 20
# Rows of one step may be logged by several calls.
_AT_ONCE = 0.005
_SHARE_OF_STEP = 0.4


async def go_back(
    store: Store,
    agent: int,
    number: int,
    attempt: int,
    *,
    saved_at: float | None,
    rows: Sequence[str],
) -> float | None:
    """Take in what the last attempt could not send, then put aside what it logged later.

    `saved_at`: when the checkpoint was made from which it goes on; None: there is none, and it
    begins anew. Rows that were logged after what is returned may never have been sent; None: all
    were.
    """
    trial = (agent, number, attempt)
    run = await store.write(agents.run_to_rewind, *trial, saved_at, time.time())
    if run is None:
        return None
    if rows:
        await store.write(_bring_back, run, rows[0])
        await store.transfer(run, Merge(run, HISTORY, rows))
        await store.write(runs.update, run, seen_client=1)  # Who resumes is told of these rows.

    def later(_steps: Numbers, times: Numbers) -> Flags:
        if saved_at is None:
            return np.ones(len(times), bool)
        # What never arrived tells nothing by its time: most programs log it again.
        allowed = 0.0 if rows else _time_to_log(times[times <= saved_at])
        return times > saved_at + allowed

    def is_still_ours(db: Connection) -> bool:
        return agents.run_at_work(db, *trial) == run

    rewind = Rewind(
        run, later, time.time(), keeps_own=True, has_more=bool(rows), guard=is_still_ours
    )
    try:
        await store.transfer(run, rewind)
    except Superseded:
        return None
    await store.write(agents.note_kept, *trial)
    if saved_at is None or rows or rewind.aside.newest >= saved_at:
        return None
    return rewind.aside.newest


def _bring_back(db: Connection, run: int, first: str) -> None:
    """What the last attempt left out, if the server hears of its first row only now."""
    returned_rows.bring_back(db, run, unrepeated_rows(db, run, first))


def _time_to_log(times: Numbers) -> float:
    """How long after a checkpoint the row of the saved step may come, by the rows before it.

    A program that saves a step and then logs it does so at once; the row of the next step takes
    about as long as the steps before.
    """
    gaps = np.diff(times[-_ROWS_LOOKED_AT:])
    steps = gaps[gaps > _AT_ONCE]
    return float(np.quantile(steps, 0.25)) * _SHARE_OF_STEP if len(steps) else 0.0
