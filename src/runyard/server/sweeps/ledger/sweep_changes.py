"""What people, and controllers on their machines, do to a sweep: pause, resume, cap, retry, ..."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from sqlite3 import Connection
from typing import Any

from runyard.server.runs import runs
from runyard.server.store.sql import Row
from runyard.server.sweeps.ledger import budgets, claims, programs, settling, sweeps, trials
from runyard.server.sweeps.ledger.trials import IsTaken
from runyard.server.sweeps.policy.controller_requests import Asked
from runyard.server.sweeps.policy.rules import Rules
from runyard.vocabulary import OPEN_STATES


class Refused(ValueError):
    """A change that the sweep's state does not allow; the text says why."""


def set_state(db: Connection, key: int, state: str, now: float) -> Row:
    """Pause (trials at work go on), resume, stop (they go on, nothing new), or cancel (they end).

    A sweep that has ended can be resumed: what it had left, or was cancelled, is to be had again.
    """
    if state not in ("running", "paused", "finished", "canceled"):
        raise Refused(f"a sweep cannot be {state[:50]!r}: running, paused, finished or canceled")
    sweep = sweeps.get(db, key)
    if state == "running":
        programs.forget(db, key)
        sweeps.update(db, key, now, cause=None)
    if sweep["state"] == state:
        return sweeps.get(db, key)
    if state == "paused" and sweep["state"] != "running":
        raise Refused(f"only a running sweep can be paused; this one is {sweep['state']}")
    is_over = state in ("finished", "canceled")
    if state == "running" and sweep["state"] not in OPEN_STATES:
        _bring_back(db, key)
    sweeps.update(db, key, now, state=state, cause=None, ended_at=now if is_over else None)
    if is_over:
        for trial in trials.of_sweep(db, key, "waiting"):
            trials.end_waiting(db, trial, "canceled", now)
        for trial in trials.of_sweep(db, key, "paused"):
            trials.end_waiting(db, trial, "stopped", now)
    if state == "canceled":
        for trial in trials.of_sweep(db, key, "running"):
            run = None if trial["run"] is None else runs.by_key(db, trial["run"])
            if run is not None:
                settling.ask_to_end(db, run, "canceled", now)
    settling.conclude(db, key, now)
    return sweeps.get(db, key)


def _reopen(db: Connection, key: int, now: float) -> None:
    _bring_back(db, key)
    sweeps.update(db, key, now, state="running", cause=None, ended_at=None)


def _bring_back(db: Connection, key: int) -> None:
    """Trials that were cancelled with their sweep wait again; those of deleted runs are gone."""
    for trial in trials.of_sweep(db, key, "canceled"):
        if trial["cause"] != "deleted":
            trials.return_to_queue(db, trial)


def delete(db: Connection, key: int, now: float) -> None:
    """Forget a sweep of which there is nothing but its file."""
    used = db.execute(
        "SELECT EXISTS (SELECT 1 FROM agents WHERE sweep = :sweep)"
        " OR EXISTS (SELECT 1 FROM jobs WHERE sweep = :sweep)"
        " OR EXISTS (SELECT 1 FROM trials WHERE sweep = :sweep AND run IS NOT NULL)",
        {"sweep": key},
    ).fetchone()
    if used[0]:
        raise Refused("it has had agents, jobs or runs: it can be canceled")
    # Ended first: whoever has it on a page, or waits for its trials, hears of that.
    set_state(db, key, "canceled", now)
    db.execute("DELETE FROM sweeps WHERE key = ?", (key,))


def set_cap(db: Connection, key: int, run_cap: int | None, now: float) -> Row:
    """How many trials there may be at most. More than before lets a finished sweep go on."""
    return _set_bound(db, key, now, run_cap=run_cap)


def set_budget(db: Connection, key: int, budget: str | None, now: float) -> Row:
    """What it may use, as `search/budget` writes it. A larger one lets a finished sweep go on."""
    return _set_bound(db, key, now, budget=budget)


def _set_bound(db: Connection, key: int, now: float, **columns: object) -> Row:
    sweep = sweeps.get(db, key)
    sweeps.update(db, key, now, **columns)
    changed = sweeps.get(db, key)
    if sweep["state"] == "finished" and _can_go_on(db, changed, now):
        _reopen(db, key, now)
    settling.conclude(db, key, now)
    return sweeps.get(db, key)


def _can_go_on(db: Connection, sweep: Row, now: float) -> bool:
    account = budgets.account(db, sweep, now)
    if account is not None and account.is_used:
        return False
    if (account is None or account.has_room()) and sweeps.has_more(sweep, sweeps.rules_of(sweep)):
        return True
    # It ended by its budget, before trials that were interrupted could go on.
    return sweep["cause"] is not None and any(
        trial["cause"] != "deleted" for trial in trials.of_sweep(db, sweep["key"], "canceled")
    )


def retry(db: Connection, key: int, numbers: list[int] | None, now: float) -> int:
    """Failed trials are to be run again: those named, or all. Says how many."""
    failed = trials.of_sweep(db, key, "failed")
    if numbers is not None:
        wanted = set(numbers)
        strangers = wanted - {trial["number"] for trial in failed}
        if strangers:
            raise Refused(
                f"trial {', '.join(map(str, sorted(strangers)[:10]))} has not failed: only failed "
                "trials are retried"
            )
        failed = [trial for trial in failed if trial["number"] in wanted]
    for trial in failed:
        trials.return_to_queue(db, trial)
    if failed and sweeps.get(db, key)["state"] not in OPEN_STATES:
        _reopen(db, key, now)
    return len(failed)


@dataclass(frozen=True)
class NewFile:
    """Another file for a sweep that is there."""

    text: str
    config: str
    rules: Rules
    method: str
    run_cap: int | None
    budget: str | None
    size: int | None
    name: str | None
    description: str | None
    # Whether the same trials would be drawn from it.
    same_space: bool


def change_file(db: Connection, key: int, new: NewFile, now: float) -> Row:
    """`wandb sweep --update`. Once trials have been drawn, what draws them must stay."""
    sweep = sweeps.get(db, key)
    same_draws = (
        new.same_space
        and new.method == sweep["method"]
        and new.rules.seeds == sweeps.rules_of(sweep).seeds
    )
    if sweep["trials"] and not same_draws:
        raise Refused(
            f"the sweep {sweep['id']} has drawn {sweep['trials']} trials: its method, parameters "
            "and seeds stay as they are. Make a new sweep, with these runs as its prior ones"
        )
    columns = {**vars(new), "rules": new.rules.as_json(), "name": new.name or sweep["name"]}
    del columns["same_space"]
    if new.description is None:
        del columns["description"]
    sweeps.update(db, key, now, **columns)
    settling.conclude(db, key, now)
    return sweeps.get(db, key)


def keep_controller(
    db: Connection, key: int, controller: str | None, scheduler: str | None, now: float
) -> None:
    """What a controller on somebody's machine wants to be kept; None leaves it as it is."""
    columns = {"controller": controller, "scheduler": scheduler}
    changes = {name: value for name, value in columns.items() if value is not None}
    sweeps.update(db, key, now, **changes)


Name = Callable[[Mapping[str, Any], IsTaken], str]


def obey_controller(
    db: Connection, key: int, text: str, wishes: Asked, name: Name, now: float
) -> None:
    """Keep what a controller says, put its settings into the queue, stop what it wants stopped."""
    keep_controller(db, key, text, None, now)
    sweep = sweeps.get(db, key)
    is_taken = partial(trials.is_taken, db, key)
    for mark, settings in wishes.settings:
        # Counted anew each time: a trial before it may have come into being just now.
        row = sweeps.get(db, key)
        claims.enqueue(db, row, settings, name(settings, is_taken), mark, now)
    for run_id in wishes.stops:
        run = runs.by_path(db, sweep["entity"], sweep["project_name"], run_id)
        if run is not None and run["sweep"] == sweep["id"]:
            settling.ask_to_end(db, run, "stopped", now)
    settling.conclude(db, key, now)


def enqueue_run(
    db: Connection,
    key: int,
    settings: Mapping[str, Any],
    name: Name,
    user: int,
    now: float,
    *,
    shown: str | None = None,
) -> Row:
    """Put what a scheduler on somebody's machine suggests into the queue: a trial with its run.

    `shown` is what the run is to be called, if not like its trial.
    """
    sweep = sweeps.get(db, key)
    if sweeps.rules_of(sweep).draws:
        raise Refused(
            f"the sweep {sweep['id']} draws its trials here: a sweep for a scheduler has "
            "scheduler: {engine: ...} in its file"
        )
    if sweep["state"] not in OPEN_STATES:
        raise Refused(
            f"the sweep {sweep['id']} is {sweep['state']}, and takes no more trials: "
            f"`wandb sweep --resume {sweep['entity']}/{sweep['project_name']}/{sweep['id']}` "
            f"lets it go on"
        )
    free = name(settings, partial(trials.is_taken, db, key))
    trial = claims.enqueue_run(db, sweep, settings, free, user, now)
    if shown and trial["run"] is not None:
        runs.update(db, trial["run"], name=shown)
    return trial


def scheduled_runs(db: Connection, sweep: Row) -> str:
    """Which run became of what the controller asked for, as it reads it."""
    rows = db.execute(
        "SELECT mark, id FROM trials WHERE sweep = ? AND mark IS NOT NULL ORDER BY number",
        (sweep["key"],),
    )
    return json.dumps({"scheduled": [{"id": row["mark"], "runid": row["id"]} for row in rows]})
