"""Sweeps and trials as people and programs want them."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from runyard.end_causes import CAUSES, cause_of_exit
from runyard.server.processes.attempts import together, usage_json
from runyard.server.store import json_text
from runyard.server.store.sql import Row
from runyard.server.sweeps.ledger import agents, budgets, sweeps, trials
from runyard.server.sweeps.ledger.at_work import at_work
from runyard.server.sweeps.policy.budget_account import Account
from runyard.server.sweeps.policy.estimates import eta_seconds, seconds_left, trial_seconds
from runyard.server.sweeps.policy.lifecycle import STATES
from runyard.server.sweeps.policy.rules import Rules
from runyard.shapes.sweeps import Sweep, SweepAgent, SweepBudget, Trial
from runyard.vocabulary import OPEN_STATES

# Nobody is told to think of stopping a sweep that may well find something better.
UNLIKELY = 0.02


def sweep_json(connection: sqlite3.Connection, row: Row, now: float) -> Sweep:
    """A sweep with its counts, its best trial and when it will be over."""
    rules = sweeps.rules_of(row)
    counts = sweeps.counts(connection, row["key"])
    best = trials.best(connection, row["key"])
    account = budgets.account(connection, row, now)
    return {
        "key": row["key"],
        "id": row["id"],
        "name": row["name"],
        "description": row["description"],
        "entity": row["entity"],
        "project": row["project_name"],
        "method": row["method"],
        "state": row["state"],
        "cause": row["cause"],
        "config": json.loads(row["config"]),
        "run_cap": row["run_cap"],
        "budget": None if account is None else _budget_json(account),
        "chance": _low_chance(row),
        "expected": sweeps.expected(row, rules),
        "counts": {state: counts.get(state, 0) for state in STATES},
        "trials": row["trials"] - row["removed"],
        "attempts": _attempts(connection, row["key"]),
        "agents": _agents(connection, row["key"]),
        "metric": rules.aims[0].name if rules.aims else None,
        "goal": ("maximize" if rules.aims[0].maximize else "minimize") if rules.aims else None,
        "best": None if best is None else trial_json(best, rules),
        "eta_seconds": _eta(connection, row, rules, counts, account, now),
        "seed": row["seed"],
        "folder": row["folder"],
        "created_at": row["created_at"],
        "started_at": row["started_at"],
        "ended_at": row["ended_at"],
    }


def _low_chance(row: Row) -> float | None:
    is_low = row["chance"] is not None and row["chance"] <= UNLIKELY
    return row["chance"] if is_low and row["state"] in OPEN_STATES else None


def _budget_json(account: Account) -> SweepBudget:
    return {
        "limit": account.budget.hours,
        "unit": account.budget.unit,
        "used": account.used,
        "planned": account.planned,
    }


def trial_json(trial: Row, rules: Rules, left: float | None = None) -> Trial:
    """A trial; `value` is its first metric, `metrics` all that the search looks at; `left`: how
    long it is expected to run still."""
    measured = json_text.parse(trial["measured"]) if trial["measured"] else {}
    return {
        "number": trial["number"],
        "id": trial["id"],
        "run": trial["run"],
        "name": trial["name"],
        "state": trial["state"],
        "cause": trial["cause"],
        "values": json_text.parse(trial["settings"]),
        "value": measured.get(rules.aims[0].name) if rules.aims else None,
        "metrics": measured,
        "attempts": trial["attempts"],
        "agent": trial["agent"],
        "host": _if_there(trial, "host"),
        "node": _if_there(trial, "node"),
        "job": _if_there(trial, "job"),
        "usage": usage_json(_if_there(trial, "usage")),
        "began_at": trial["began_at"],
        "created_at": trial["created_at"],
        "started_at": trial["started_at"],
        "ended_at": trial["ended_at"],
        "seconds": trial["seconds"],
        "seconds_left": left,
        "exit_code": trial["exit_code"],
    }


def work_json(connection: sqlite3.Connection, sweep: int) -> dict[str, Any]:
    """The agents of a sweep, also those that left, and all attempts; `causes` in words."""
    who = (
        "key", "kind", "host", "slots", "packing", "job", "node", "created_at", "heard_at",
        "left_at",
    )  # fmt: skip
    columns = ("trial", "number", "agent", "host", "started_at", "ended_at", "exit_code")
    shown = [
        {
            **{name: row[name] for name in columns},
            "cause": _cause(row),
            "usage": usage_json(row["usage"]),
        }
        for row in trials.attempts_of(connection, sweep)
    ]
    return {
        "agents": [{name: row[name] for name in who} for row in agents.of_sweep(connection, sweep)],
        "attempts": shown,
        "causes": {name: cause.text for name, cause in CAUSES.items()},
    }


def _cause(attempt: Row) -> str | None:
    """In the ledger's words; what only an exit code tells of is read from that."""
    if attempt["ended_at"] is None or attempt["cause"] in CAUSES:
        cause: str | None = attempt["cause"]
        return cause
    code = attempt["exit_code"]
    return "node" if code is None else cause_of_exit(code)


def _if_there(row: Row, name: str) -> Any:
    """A column that only some questions bring along."""
    return row[name] if name in row.keys() else None  # noqa: SIM118  (a Row)


def _attempts(connection: sqlite3.Connection, sweep: int) -> int:
    attempts: int = connection.execute(
        "SELECT coalesce(sum(attempts), 0) FROM trials WHERE sweep = ?", (sweep,)
    ).fetchone()[0]
    return attempts


def _agents(connection: sqlite3.Connection, sweep: int) -> list[SweepAgent]:
    """Those who have not left, each with what it has, and what that uses."""
    at_work = connection.execute(
        "SELECT trials.agent, attempts.usage, (SELECT ended_at FROM clients "
        "WHERE clients.run = trials.run AND kind != 'sync' AND clients.number > trials.clients "
        "ORDER BY clients.number DESC LIMIT 1) AS over_at FROM trials LEFT JOIN attempts "
        "ON attempts.run = trials.run AND attempts.number = trials.attempt "
        "WHERE trials.sweep = ? AND trials.state = 'running'",
        (sweep,),
    )
    running: dict[int, list[str | None]] = {}
    over: dict[int, float] = {}
    for row in at_work:
        running.setdefault(row["agent"], []).append(row["usage"])
        if row["over_at"] is not None:
            over[row["agent"]] = min(row["over_at"], over.get(row["agent"], row["over_at"]))
    return [
        {
            "key": row["key"],
            "kind": row["kind"],
            "host": row["host"],
            "pid": row["pid"],
            "slots": row["slots"],
            "packing": row["packing"],
            "job": row["job"],
            "node": row["node"],
            "created_at": row["created_at"],
            "heard_at": row["heard_at"],
            "running": len(running.get(row["key"], ())),
            "usage": together(running.get(row["key"], ())),
            "over_since": over.get(row["key"]),
        }
        for row in agents.of_sweep(connection, sweep)
        if row["left_at"] is None
    ]


def _eta(
    connection: sqlite3.Connection,
    row: Row,
    rules: Rules,
    counts: dict[str, int],
    account: Account | None,
    now: float,
) -> float | None:
    if row["state"] not in OPEN_STATES:
        return 0.0
    whole = sweeps.expected(row, rules)
    # Of what is drawn, those that wait have still to run.
    undrawn = None if whole is None else max(0, whole - (row["trials"] - row["removed"]))
    if row["has_target"]:
        undrawn = 0
    if account is not None and (most := account.trials_left) is not None:
        undrawn = most if undrawn is None else min(undrawn, most)
    return eta_seconds(
        left=None if undrawn is None else undrawn + counts.get("waiting", 0),
        at_work=list(at_work(connection, row["key"], now).values()),
        ended=row["ended_trials"],
        busy_seconds=row["busy_seconds"],
    )


def times_left(connection: sqlite3.Connection, row: Row, now: float) -> dict[int, float]:
    """Of each trial at work, by its number: how long it is expected to run still."""
    working = at_work(connection, row["key"], now)
    each = trial_seconds(list(working.values()), row["ended_trials"], row["busy_seconds"])
    times = {number: seconds_left(trial, each) for number, trial in working.items()}
    return {number: left for number, left in times.items() if left is not None}
