"""What is known of a sweep's programs: learnt when attempts end, asked before a trial begins.

It belongs to the sweep: an agent that has just come, in the next link of a chain, knows nothing.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from sqlite3 import Connection

from runyard.save_protocol import GO_ON
from runyard.server.store.sql import Row
from runyard.server.sweeps.ledger import sweeps
from runyard.server.sweeps.policy.fitting import Programs, Refusal, Room, explain, refusal
from runyard.vocabulary import OPEN_STATES

# How attempts end that their job's end has cut off; in a chain that is asking to go on.
_CUT = ("time", "go-on")


def known(db: Connection, sweep: int) -> Programs:
    row = db.execute(
        "SELECT saves, shortest_saving, finished, finished_seconds, shortest_finishing, fruitless, "
        "longest_fruitless FROM programs WHERE sweep = ?",
        (sweep,),
    ).fetchone()
    if row is None:
        return Programs()
    return Programs(**{**dict(row), "saves": bool(row["saves"])})


def learn(
    db: Connection, before: Row, after: Row, *, exit_code: int, seconds: float, saved: bool
) -> None:
    """An attempt has ended after so many `seconds`: the trial `before` its end, and `after`."""
    sweep: int = before["sweep"]
    programs = known(db, sweep)
    changed = programs
    can_go_on = saved or exit_code == GO_ON
    if can_go_on:
        changed = replace(
            changed,
            saves=True,
            shortest_saving=min(seconds, programs.shortest_saving or seconds),
            fruitless=0,
        )
    if after["state"] == "finished":
        changed = replace(
            changed,
            finished=programs.finished + 1,
            finished_seconds=programs.finished_seconds + seconds,
            shortest_finishing=min(seconds, programs.shortest_finishing or seconds),
            fruitless=0,
        )
    elif after["cause"] in _CUT and not can_go_on:
        if after["steps"] > before["steps"]:
            changed = replace(changed, fruitless=0)
        elif after["steps"] or programs.saves:
            # One that neither logs nor saves here may go on from a file of its own.
            changed = replace(
                changed,
                fruitless=programs.fruitless + 1,
                longest_fruitless=max(seconds, programs.longest_fruitless),
            )
    if changed != programs:
        _store(db, sweep, changed)


def look_for_room(db: Connection, sweep: int, room: Room) -> Refusal | None:
    """Whether a trial of the sweep may begin where there is so much room; if not, why."""
    return refusal(known(db, sweep), room)


def note_too_long(db: Connection, sweep: int, room: Room, now: float) -> str:
    """An agent leaves because every trial is too long for its job: the sweep says why."""
    row = sweeps.get(db, sweep)
    why = explain(known(db, sweep), room, row["id"])
    if row["state"] in OPEN_STATES and row["cause"] != why:
        sweeps.update(db, sweep, now, cause=why)
    return why


def forget(db: Connection, sweep: int) -> None:
    """The programs may have changed: they are tried again."""
    db.execute("DELETE FROM programs WHERE sweep = ?", (sweep,))


def _store(db: Connection, sweep: int, programs: Programs) -> None:
    db.execute(
        "INSERT OR REPLACE INTO programs (sweep, saves, shortest_saving, finished, "
        "finished_seconds, shortest_finishing, fruitless, longest_fruitless) VALUES (:sweep, "
        ":saves, :shortest_saving, :finished, :finished_seconds, :shortest_finishing, :fruitless, "
        ":longest_fruitless)",
        {"sweep": sweep, **asdict(programs)},
    )
