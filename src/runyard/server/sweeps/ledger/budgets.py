"""What a sweep has used of its budget, from the seconds of its trials."""

from __future__ import annotations

from sqlite3 import Connection

from runyard.search.budget import parse_budget
from runyard.server.processes.attempts import gpu_share
from runyard.server.store.sql import Row
from runyard.server.sweeps.ledger.at_work import at_work
from runyard.server.sweeps.policy.budget_account import Account, OpenTrial, balance
from runyard.vocabulary import RESULT_STATES


def account(db: Connection, sweep: Row, now: float) -> Account | None:
    """Of a sweep as it is now; None: it has no budget."""
    if sweep["budget"] is None:
        return None
    budget = parse_budget(sweep["budget"])
    ended, seconds, gpu_seconds, other = 0, 0.0, 0.0, 0.0
    totals = db.execute(
        "SELECT state, count(*) AS count, sum(seconds) AS seconds, sum(gpu_seconds) AS gpu_seconds "
        "FROM trials WHERE sweep = ? AND state NOT IN ('waiting', 'running', 'paused') "
        "GROUP BY state",
        (sweep["key"],),
    )
    for row in totals:
        if row["state"] in RESULT_STATES:
            ended += row["count"]
            seconds += row["seconds"]
            gpu_seconds += row["gpu_seconds"]
        else:
            other += row["gpu_seconds"] if budget.counts_gpus else row["seconds"]
    return balance(
        budget,
        ended=ended,
        ended_seconds=seconds,
        ended_gpu_seconds=gpu_seconds,
        other=other,
        open_trials=_open_trials(db, sweep["key"], now),
    )


def _open_trials(db: Connection, sweep: int, now: float) -> list[OpenTrial]:
    """Those that have begun; a paused one may never go on, and is not expected to."""
    working = at_work(db, sweep, now)
    rows = db.execute(
        "SELECT trials.number, trials.state, trials.seconds, trials.gpu_seconds, trials.began_at, "
        "attempts.usage FROM trials LEFT JOIN attempts ON attempts.run = trials.run "
        "AND attempts.number = trials.attempt WHERE trials.sweep = ? AND trials.attempts > 0 "
        "AND trials.state IN ('waiting', 'running', 'paused')",
        (sweep,),
    )
    budgets = []
    for row in rows:
        if row["state"] == "running":
            trial, share = working[row["number"]], gpu_share(row["usage"])
            so_far = max(0.0, now - (row["began_at"] or now))
            gpu_seconds = row["gpu_seconds"] + so_far * share
            budgets.append(OpenTrial(trial.seconds, gpu_seconds, trial.left, share or None))
        else:
            left = 0.0 if row["state"] == "paused" else None
            share = row["gpu_seconds"] / row["seconds"] if row["seconds"] else 0.0
            budgets.append(OpenTrial(row["seconds"], row["gpu_seconds"], left, share))
    return budgets
