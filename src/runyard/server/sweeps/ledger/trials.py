"""Trials: rows of the ledger, found, counted, and moved where nobody has them.

`claims` and `settling` change those that an agent has.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from sqlite3 import Connection
from typing import Any

from runyard.server.runs import runs
from runyard.server.store import sql
from runyard.server.store.names import new_id
from runyard.server.store.sql import Row, exists, fetch_column, fetch_number, fetch_one
from runyard.server.sweeps.policy import lifecycle
from runyard.server.sweeps.policy.lifecycle import DELETED, Transition

# Whether a name is taken.
IsTaken = Callable[[str], bool]

# Behind every place that a returning trial gets at the head.
_TAIL = 1e15
_WITH_AGENT = (
    "SELECT trials.*, agents.host AS host, agents.kind AS agent_kind, agents.job AS job, "
    "agents.node AS node, attempts.usage AS usage FROM trials "
    "LEFT JOIN agents ON agents.key = trials.agent "
    "LEFT JOIN attempts ON attempts.run = trials.run AND attempts.number = trials.attempt "
)


def by_run(db: Connection, run: int) -> Row | None:
    return fetch_one(db, "SELECT * FROM trials WHERE run = ?", (run,))


def ended_by_run(db: Connection, run: int) -> Row | None:
    """The trial of a run if it counts among the ends: it is over, or paused."""
    return fetch_one(db, "SELECT * FROM trials WHERE run = ? AND ended IS NOT NULL", (run,))


def earlier_clients(db: Connection, run: int) -> int:
    """How many clients a run had before the attempt that its trial is in; 0 if it is no trial."""
    row = db.execute("SELECT clients FROM trials WHERE run = ?", (run,)).fetchone()
    number: int = 0 if row is None else row["clients"]
    return number


def is_at_work(db: Connection, run: int) -> bool:
    """Whether an agent has the trial that a run is, if it is one."""
    return exists(db, "SELECT 1 FROM trials WHERE run = ? AND state = 'running'", (run,))


def by_number(db: Connection, sweep: int, number: int) -> Row | None:
    return fetch_one(db, "SELECT * FROM trials WHERE sweep = ? AND number = ?", (sweep, number))


def get(db: Connection, sweep: int, number: int) -> Row:
    row = by_number(db, sweep, number)
    assert row is not None
    return row


def by_mark(db: Connection, sweep: int, mark: str) -> Row | None:
    return fetch_one(db, "SELECT * FROM trials WHERE sweep = ? AND mark = ?", (sweep, mark))


def of_sweep(
    db: Connection, sweep: int, state: str | None = None, last: int | None = None
) -> list[Row]:
    """By number; with the host, the job and the kind of the agent that had it last, and what the
    newest attempt used.

    With `last`, only so many, those that were the last to end, in the order of their ends.
    """
    if last is not None:
        return _last_ended(db, sweep, state, last)
    return db.execute(
        f"{_WITH_AGENT} WHERE trials.sweep = :sweep AND (:state IS NULL OR trials.state = :state) "
        "ORDER BY trials.number",
        {"sweep": sweep, "state": state},
    ).fetchall()


def _last_ended(db: Connection, sweep: int, state: str | None, last: int) -> list[Row]:
    rows = db.execute(
        f"{_WITH_AGENT} WHERE trials.sweep = :sweep AND trials.ended IS NOT NULL "
        "AND (:state IS NULL OR trials.state = :state) ORDER BY trials.ended DESC LIMIT :last",
        {"sweep": sweep, "state": state, "last": last},
    ).fetchall()
    return rows[::-1]


def open_elsewhere(db: Connection, keys: Sequence[int]) -> dict[int, str]:
    """Of these runs, those whose trials go on and were drawn elsewhere: their trials' states."""
    rows = db.execute(
        "SELECT trials.run, trials.state FROM json_each(?) AS wanted "
        "CROSS JOIN trials ON trials.run = wanted.value "
        "CROSS JOIN sweeps ON sweeps.key = trials.sweep "
        "WHERE trials.state IN ('waiting', 'running', 'paused') "
        "AND NOT json_extract(sweeps.rules, '$.draws')",
        (json.dumps(list(keys)),),
    )
    return {row["run"]: row["state"] for row in rows}


def going_on(db: Connection, keys: Sequence[int]) -> set[int]:
    """Those of these runs whose trials are not over."""
    question = (
        "SELECT trials.run FROM json_each(?) AS wanted "
        "CROSS JOIN trials ON trials.run = wanted.value "
        "WHERE trials.state IN ('waiting', 'running', 'paused')"
    )
    return set(fetch_column(db, question, (json.dumps(list(keys)),)))


def attempts_of(db: Connection, sweep: int) -> list[Row]:
    """All that its agents ran, by trial; `trial` is its number."""
    return db.execute(
        "SELECT attempts.*, trials.number AS trial FROM trials "
        "CROSS JOIN attempts ON attempts.run = trials.run "
        "WHERE trials.sweep = ? ORDER BY trials.number, attempts.number",
        (sweep,),
    ).fetchall()


def at_work(db: Connection, agent: int) -> list[Row]:
    """What an agent has."""
    return db.execute(
        "SELECT * FROM trials WHERE agent = ? AND state = 'running' ORDER BY number", (agent,)
    ).fetchall()


def best(db: Connection, sweep: int) -> Row | None:
    """The trial whose first metric is the best of those that keep all limits."""
    return fetch_one(
        db,
        "SELECT trials.*, agents.host AS host, agents.job AS job, agents.node AS node FROM trials "
        "LEFT JOIN agents ON agents.key = trials.agent "
        "WHERE trials.sweep = ? AND trials.score IS NOT NULL ORDER BY trials.score LIMIT 1",
        (sweep,),
    )


def is_taken(db: Connection, sweep: int, name: str) -> bool:
    return exists(db, "SELECT 1 FROM trials WHERE sweep = ? AND name = ?", (sweep, name))


def update(db: Connection, trial: Row, **columns: Any) -> None:
    """Anything but the state, which is for `move` to write."""
    if "state" in columns:
        raise lifecycle.Impossible("a trial's state follows from an event")
    _write(db, trial, columns)


def _write(db: Connection, trial: Row, columns: Mapping[str, Any]) -> None:
    place = {"sweep": trial["sweep"], "number": trial["number"]}
    sql.update(db, "trials", place, columns)


def move(db: Connection, trial: Row, event: str, **columns: Any) -> Transition:
    """The one place where a trial's state is written; what cannot happen raises.

    Lease, loss and what was asked of it belong to the state that it leaves.
    """
    is_deleted = trial["state"] == "canceled" and trial["cause"] == DELETED
    transition = lifecycle.after(event, DELETED if is_deleted else trial["state"])
    state = "canceled" if transition.after == DELETED else transition.after
    cleared: dict[str, Any] = {"lease": None, "lost": None, "stop": None, "stop_at": None}
    _write(db, trial, {**cleared, **columns, "state": state})
    return transition


def place_in_queue(queue: str, sequence: int) -> float:
    """Where a trial waits: those at the head in the order of their return, before the others."""
    return float(sequence) if queue == "head" else _TAIL + sequence


def add_waiting(
    db: Connection,
    sweep: int,
    number: int,
    name: str,
    rank: int,
    columns: Mapping[str, Any],
    now: float,
) -> None:
    """A trial that no agent has yet, behind those that were cut off."""
    place = {"sweep": sweep, "number": number, "id": new_id(), "name": name, "created_at": now}
    queue = {"state": "waiting", "place": place_in_queue("tail", rank)}
    sql.insert(db, "trials", {**place, **queue, **columns})


def end_waiting(db: Connection, trial: Row, state: str, now: float) -> None:
    """A trial that is not at work does not go on any more."""
    transition = move(
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
    trial = get(db, sweep, number)
    if trial["state"] == "paused":
        place = place_in_queue("head", next_rank(db, sweep))
        move(db, trial, "promote", place=place, ended=None)
    return str(trial["state"])


def return_to_queue(db: Connection, trial: Row, **columns: object) -> None:
    """A trial that had ended is to be run once more."""
    place = place_in_queue("tail", next_rank(db, trial["sweep"]))
    move(db, trial, "retry", place=place, tries="{}", ended=None, score=None, **columns)


def next_rank(db: Connection, sweep: int) -> int:
    """Counts ends and returns, in their order."""
    db.execute("UPDATE sweeps SET sequence = sequence + 1 WHERE key = ?", (sweep,))
    return fetch_number(db, "SELECT sequence FROM sweeps WHERE key = ?", (sweep,))
