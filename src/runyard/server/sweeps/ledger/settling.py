"""How attempts of trials end: the one place where a trial leaves its lease.

Whoever learns of an end (the agent, the run's client, a lost lease) calls `settle` in the same
transaction in which it stores what it learned. Told twice it changes nothing: only a trial that is
running is settled.
"""

from __future__ import annotations

import json
from dataclasses import replace
from sqlite3 import Connection

from runyard.end_causes import cause_of_exit
from runyard.server.history.history import HISTORY, count_rows
from runyard.server.processes import attempts, clients, returned_rows
from runyard.server.processes.consoles import last_words
from runyard.server.runs import runs, states
from runyard.server.store.sql import Row
from runyard.server.sweeps.ledger import budgets, sweeps, trials
from runyard.server.sweeps.ledger.measures import ends_not_finite, measure, result_columns
from runyard.server.sweeps.policy import lifecycle
from runyard.server.sweeps.policy.budget_account import Account
from runyard.server.sweeps.policy.controller_requests import read_controller
from runyard.server.sweeps.policy.lifecycle import Transition
from runyard.vocabulary import ENDED_STATES, OPEN_STATES, RESULT_STATES


def settle(
    db: Connection,
    trial: Row,
    cause: str,
    now: float,
    *,
    exit_code: int | None = None,
    ended_at: float | None = None,
    saved: bool = False,
    is_lost: bool = False,
) -> Row:
    """The attempt that a trial is in has ended. The trial as it is then.

    `saved`: it wrote a checkpoint, which is how one that logs nothing gets on. `is_lost`: nobody
    saw it end; should it be heard again, `take_back` undoes all of this.
    """
    if trial["state"] != "running":
        return trial
    sweep = sweeps.get(db, trial["sweep"])
    rules = sweeps.rules_of(sweep)
    run = None if trial["run"] is None else runs.by_key(db, trial["run"])
    steps = 0 if run is None else count_rows(db, run["key"], HISTORY)
    stop = trial["stop"]
    if stop == "canceled" and sweep["state"] in OPEN_STATES:
        # It was cancelled with its sweep, which was resumed before it had ended.
        stop, cause = None, "go-on"
    if run is not None and cause == "finished":
        run = _complete(db, trial, run)
    diverged = stop is None and cause == "finished" and run is not None
    diverged = diverged and run is not None and ends_not_finite(db, run, rules)
    if diverged and rules.nan == "stop":
        cause = "nan"
    outcome = lifecycle.settle(
        cause,
        stop=stop,
        tries=json.loads(trial["tries"]),
        progressed=steps > trial["steps"] or (saved and not steps),
        retries=rules.retries,
    )
    if outcome.state == "waiting" and sweep["state"] not in OPEN_STATES:
        # Nothing is handed out any more; if the sweep is taken up again, this is too.
        outcome = replace(outcome, state="canceled", queue="final")
    began_at = trial["began_at"] or now
    over_at = max(began_at, min(now, ended_at or now))
    lasted = over_at - began_at
    seconds = trial["seconds"] + lasted
    columns: dict[str, object] = {
        # One that is kept has finished, and the reader is to know.
        "cause": "nan" if diverged else stop or cause,
        "tries": json.dumps(outcome.tries),
        "steps": max(steps, trial["steps"]),
        "exit_code": exit_code,
        "seconds": seconds,
        "gpu_seconds": trial["gpu_seconds"] + lasted * _gpu_share(db, trial),
        "ended_at": over_at,
    }
    if is_lost and stop is None:
        columns["lost"] = json.dumps({name: trial[name] for name in _UNDONE})
    if outcome.state == "waiting":
        columns["place"] = trials.place_in_queue(outcome.queue, trials.next_rank(db, sweep["key"]))
    else:
        if run is not None and outcome.state in ENDED_STATES:
            run = _complete(db, trial, run)
        measured = {} if run is None else measure(db, run, rules)
        columns |= result_columns(db, sweep["key"], outcome.state, measured, rules)
        if outcome.state in RESULT_STATES and rules.has_target(measured):
            sweeps.update(db, sweep["key"], now, has_target=1)
        if outcome.state == "finished":
            db.execute(
                "UPDATE sweeps SET ended_trials = ended_trials + 1, "
                "busy_seconds = busy_seconds + ? WHERE key = ?",
                (seconds, sweep["key"]),
            )
    transition = trials.move(db, trial, lifecycle.ENDS[outcome.state], **columns)
    settled = trials.get(db, trial["sweep"], trial["number"])
    if run is not None:
        attempts.close(db, run["key"], trial["attempt"], over_at)
        _end_run(db, run, transition, outcome.queue, exit_code, over_at)
    if outcome.state == "failed":
        _give_up(db, settled, rules.stop_after_failures, now)
    conclude(db, sweep["key"], now)
    return settled


def _gpu_share(db: Connection, trial: Row) -> float:
    """Of the attempt that a trial is in; W&B's agents tell nothing of GPUs."""
    return attempts.gpu_share(attempts.find_usage(db, trial["run"], trial["attempt"]))


def _complete(db: Connection, trial: Row, run: Row) -> Row:
    """The run with the rows that its program will not log again."""
    returned_rows.bring_back_at_end(db, trial, run["key"])
    complete = runs.by_key(db, run["key"])
    assert complete is not None
    return complete


# What `take_back` restores.
_RESULT = ("score", "measured", "ended", "ended_at")
_UNDONE = ("cause", "tries", "steps", "exit_code", "seconds", "gpu_seconds", *_RESULT)


def _end_run(
    db: Connection,
    run: Row,
    transition: Transition,
    queue: str,
    exit_code: int | None,
    over_at: float,
) -> None:
    if run["state"] in (*states.ALIVE, "pending"):
        # Nobody told the run of its end.
        runs.update(
            db,
            run["key"],
            state=transition.run,
            exit_code=exit_code,
            ended_at=over_at,
            preempting=0,
        )
    elif queue == "head" or transition.after == "paused":
        runs.update(db, run["key"], state=transition.run)  # It goes on later.


def settle_run(
    db: Connection,
    run: Row,
    exit_code: int,
    now: float,
    *,
    attempt: int | None = None,
    cause: str | None = None,
    ended_at: float | None = None,
    saved: bool = False,
) -> Row | None:
    """The program of a run has ended. The trial that it is, if it is one.

    For whoever has just stored the end of a run: `endings`, which knows the attempt, and the stream
    of a client where no attempt of ours is open.
    """
    trial = trials.by_run(db, run["key"])
    if trial is None or attempt not in (None, trial["attempt"]):
        return trial
    if cause is None:
        cause = cause_of_exit(exit_code, preempting=bool(run["preempting"]))
    return settle(
        db,
        take_back(db, trial, now),
        cause,
        now,
        exit_code=states.shell_code(exit_code),
        ended_at=ended_at,
        saved=saved,
    )


def lose(db: Connection, trial: Row, now: float) -> Row:
    """Nobody has answered for a running trial in time.

    Its client may have said how it ended, before who stood beside it was lost.
    """
    client = clients.newest_after(db, trial["run"], trial["clients"])
    if client is None or client["ended_at"] is None:
        return settle(db, trial, "node", now, is_lost=True)
    run = runs.by_key(db, trial["run"])
    code = client["exit_code"] or 0
    cause = cause_of_exit(code, preempting=bool(run is not None and run["preempting"]))
    return settle(db, trial, cause, now, exit_code=code, ended_at=min(client["ended_at"], now))


def ask_to_end(db: Connection, run: Row, why: str, now: float) -> bool:
    """Ask the trial that a run is to end: stopped, canceled or paused. Says whether it was open.

    One at work hears it by its client's stream, then by its agent; one that waits ends at once.
    """
    trial = trials.by_run(db, run["key"])
    if trial is None or trial["state"] in ENDED_STATES:
        return False
    if trial["state"] == "running":
        if trial["stop"] is None or why == "canceled":
            trials.update(db, trial, stop=why, stop_at=now)
        runs.update(db, run["key"], stop_asked=1)
    elif why != "paused":
        trials.end_waiting(db, trial, why, now)
        conclude(db, trial["sweep"], now)
    return True


def forget(db: Connection, run: Row, now: float) -> None:
    """A run that is a trial is about to be deleted.

    Its trial does not count any more; in a grid its setting is to be had again, as at W&B.
    """
    trial = trials.by_run(db, run["key"])
    if trial is None:
        return
    trials.move(
        db,
        trial,
        "delete",
        cause=lifecycle.DELETED,
        score=None,
        ended=None,
        ended_at=trial["ended_at"] or now,
    )
    sweep = sweeps.get(db, trial["sweep"])
    sweeps.update(db, sweep["key"], now, removed=sweep["removed"] + 1)
    if sweep["method"] == sweeps.GRID and sweeps.rules_of(sweep).draws:
        number = sweep["trials"] + 1
        name = f"{trial['name']}_{number}"
        while trials.is_taken(db, sweep["key"], name):
            name += "_"
        columns = {column: trial[column] for column in ("setting", "point", "settings")}
        rank = trials.next_rank(db, sweep["key"])
        trials.add_waiting(db, sweep["key"], number, name, rank, columns, now)
        sweeps.update(db, sweep["key"], now, trials=number)
    conclude(db, sweep["key"], now)


def release_run(db: Connection, run: int) -> None:
    """The trial of a run that was forgotten names it no longer: it lies in the trash."""
    db.execute("UPDATE trials SET run = NULL WHERE run = ?", (run,))


def hand_back(db: Connection, trial: Row, now: float) -> None:
    """A trial never reached the agent that it was handed to: it waits as if nothing had been."""
    place = trials.place_in_queue("head", trials.next_rank(db, trial["sweep"]))
    transition = trials.move(
        db,
        trial,
        "hand back",
        place=place,
        attempts=trial["attempts"] - 1,
        attempt=0,
        began_at=None,
    )
    if trial["run"] is not None:
        runs.update(db, trial["run"], state=transition.run, ended_at=None)
    conclude(db, trial["sweep"], now)


def take_back(db: Connection, trial: Row, now: float) -> Row:
    """A trial that was given up as lost is here after all: it is running, if nobody else has it.

    Nothing is left of the loss: neither its seconds, nor the try it used, nor the run's state.
    """
    if trial["lost"] is None:
        return trial
    before = {"ended_at": None, **json.loads(trial["lost"])}
    transition = trials.move(db, trial, "return", lease=now, **before)
    run = None if trial["run"] is None else runs.by_key(db, trial["run"])
    if run is not None:
        attempts.reopen(db, run["key"], trial["attempt"])
        if run["exit_code"] is None and run["state"] not in states.ALIVE:
            runs.update(db, run["key"], state=transition.run, ended_at=None)
    return trials.get(db, trial["sweep"], trial["number"])


def add_seconds(db: Connection, trial: Row, attempt: Row, seconds: float) -> None:
    """An attempt that was settled before turns out to have been longer, or shorter."""
    more = {"seconds": seconds, "gpu_seconds": seconds * attempts.gpu_share(attempt["usage"])}
    columns: dict[str, object] = {name: trial[name] + more[name] for name in more}
    if trial["lost"] is not None:  # What `take_back` would restore.
        before = json.loads(trial["lost"])
        before |= {name: before.get(name, 0.0) + more[name] for name in more}
        columns["lost"] = json.dumps(before)
    trials.update(db, trial, **columns)
    if trial["state"] == "finished":
        db.execute(
            "UPDATE sweeps SET busy_seconds = busy_seconds + ? WHERE key = ?",
            (seconds, trial["sweep"]),
        )


def _give_up(db: Connection, trial: Row, limit: int, now: float) -> None:
    """The first trials of a sweep have all failed: it stops, and says what one of them said."""
    sweep = sweeps.get(db, trial["sweep"])
    if sweep["state"] not in OPEN_STATES:
        return
    counts = sweeps.counts(db, sweep["key"])
    if not lifecycle.after_failure(counts, limit):
        return
    code = trial["exit_code"]
    how = f" with exit code {code}" if code is not None else f" ({trial['cause']})"
    words = last_words(db, trial["run"])
    cause = f"the first {counts['failed']} trials all failed; {trial['name']} ended{how}"
    cause += f", and its last words were:\n{words}" if words else ", and printed nothing"
    sweeps.update(db, sweep["key"], now, state="failed", cause=cause, ended_at=now)


def conclude(db: Connection, sweep: int, now: float, *, none_promoted: bool = False) -> None:
    """Where nothing is at work and nothing is to come, the sweep has finished.

    Of paused trials only who judges them knows: `none_promoted` says that none will go on.
    """
    row = sweeps.get(db, sweep)
    rules = sweeps.rules_of(row)
    if row["state"] not in OPEN_STATES:
        return
    account = budgets.account(db, row, now)
    if account is not None and account.is_used:
        if not sweeps.open_counts(db, sweep).get("running"):
            _end_by_budget(db, row, account, now)
        return
    if not rules.draws and not _is_done_elsewhere(db, row, now):
        return
    has_more = sweeps.has_more(row, rules)
    if has_more and (account is None or account.has_room()):
        return
    counts = sweeps.counts(db, sweep)
    if counts.get("waiting") or counts.get("running"):
        return
    if rules.promotes and counts.get("paused") and not none_promoted:
        return
    if rules.retry_failed and _begin_second_round(db, row):
        return
    if has_more and account is not None:
        _end_by_budget(db, row, account, now)
        return
    for trial in trials.of_sweep(db, sweep, "paused"):
        # One that was not promoted to the end has been stopped where it was.
        trials.end_waiting(db, trial, "stopped", now)
    sweeps.update(db, sweep, now, state="finished", cause=None, ended_at=now)


def _is_done_elsewhere(db: Connection, sweep: Row, now: float) -> bool:
    """Whether a sweep whose trials are drawn elsewhere gets no more; none waits then in vain."""
    if read_controller(sweep["controller"]).is_done:
        return True
    counts = sweeps.counts(db, sweep["key"])
    if sweep["run_cap"] is None or counts.get("finished", 0) < sweep["run_cap"]:
        return False
    for trial in trials.of_sweep(db, sweep["key"], "waiting"):
        trials.end_waiting(db, trial, "canceled", now)
    return True


def _end_by_budget(db: Connection, sweep: Row, account: Account, now: float) -> None:
    """Nothing more begins, and nothing runs. A larger budget brings back what waits."""
    rules, counts = sweeps.rules_of(sweep), sweeps.open_counts(db, sweep["key"])
    is_cut = counts.get("waiting") or counts.get("paused") or sweeps.has_more(sweep, rules)
    for trial in trials.of_sweep(db, sweep["key"], "waiting"):
        trials.end_waiting(db, trial, "canceled", now)
    for trial in trials.of_sweep(db, sweep["key"], "paused"):
        trials.end_waiting(db, trial, "stopped", now)
    cause = account.words if is_cut or not rules.draws else None
    sweeps.update(db, sweep["key"], now, state="finished", cause=cause, ended_at=now)


def _begin_second_round(db: Connection, sweep: Row) -> int:
    """Put trials back that failed once; how many."""
    failed = db.execute(
        "SELECT * FROM trials WHERE sweep = ? AND state = 'failed' AND is_again = 0",
        (sweep["key"],),
    ).fetchall()
    for trial in failed:
        trials.return_to_queue(db, trial, is_again=1)
    return len(failed)
