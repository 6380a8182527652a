"""Handing out trials: many claims in one transaction.

A claim is whole or not at all: the trial is running and leased, its run is there, and its attempt
has begun. Who asks again with the same token gets the same trial.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any

from runyard.server.history.history import HISTORY, count_rows
from runyard.server.processes import attempts, clients
from runyard.server.runs import runs
from runyard.server.store.sql import Row
from runyard.server.sweeps.ledger import budgets, leases, settling, sweeps, trials
from runyard.server.sweeps.ledger.new_trials import OWN, Claim, Draw, NewRun, NewTrials, create_runs
from runyard.server.sweeps.policy.budget_account import Account
from runyard.server.sweeps.policy.rules import Rules


@dataclass(frozen=True)
class Handed:
    """What a claim came to: a trial with its run."""

    trial: Row
    run: Row
    # Rows that the run has from earlier attempts.
    steps: int = 0

    @property
    def attempt(self) -> int:
        return int(self.trial["attempt"])

    @property
    def goes_on(self) -> bool:
        """Whether there were attempts before."""
        return bool(self.trial["attempts"] > 1)


@dataclass(frozen=True)
class Round:
    """What a number of claims came to, in their order; None: nothing for this one now."""

    handed: Sequence[Handed | None]
    # Of the sweep, after these claims.
    state: str
    cause: str | None
    # Whether new trials can still be drawn.
    has_more: bool


def hand_out(db: Connection, sweep: int, claims: Sequence[Claim], draw: Draw, now: float) -> Round:
    row = sweeps.by_key(db, sweep)
    if row is None:
        return Round([None] * len(claims), "canceled", "the sweep is gone", False)
    rules = sweeps.rules_of(row)
    account = budgets.account(db, row, now)
    counter = _Counter(row, rules, account)
    tokens = [claim.token for claim in claims if claim.token is not None]
    known = _claimed_before(db, sweep, tokens)
    is_open = row["state"] == "running" and not (account is not None and account.is_used)
    most = min(len(claims), sweeps.room(db, row, rules)) if is_open else 0
    waiting = iter(_waiting(db, sweep, most))
    until = now + leases.LEASE_SECONDS
    new = NewTrials(db, row, draw)
    numbers: list[int | None] = []
    for claim in claims:
        if claim.token is not None and claim.token in known:
            numbers.append(known[claim.token])
            continue
        if (trial := next(waiting, None)) is not None:
            numbers.append(_take(db, row, trial, claim, until, now))
        elif row["state"] == "running" and counter.has_more():
            numbers.append(_draw(new, counter, claim))
        else:
            numbers.append(None)
        if claim.token is not None:
            # An agent that got no answer in time asks again: both may stand in this very line.
            known[claim.token] = numbers[-1]
    new.store(until, now)
    handed = _read_handed(db, sweep, numbers)
    counter.store(db, now)
    if row["cause"] is not None and any(handed):
        sweeps.update(db, sweep, now, cause=None)  # It was why nothing could begin.
    if None in handed:
        # A grid that prior runs have done already ends here, with nothing to settle.
        settling.conclude(db, sweep, now)
        row = sweeps.get(db, sweep)
    return Round(handed, row["state"], row["cause"], counter.has_more())


def enqueue(
    db: Connection, sweep: Row, settings: Mapping[str, Any], name: str, mark: str | None, now: float
) -> Row:
    """Add a trial that was drawn on somebody's machine; it waits for an agent.

    `mark` is what a controller calls it: called again with the same one, nothing changes.
    """
    known = None if mark is None else trials.by_mark(db, sweep["key"], mark)
    if known is not None:
        return known
    counter = _Counter(sweep, sweeps.rules_of(sweep))
    number = counter.next_number()
    columns = {"setting": number, "settings": json.dumps(settings), "mark": mark}
    # Behind those that were cut off.
    trials.add_waiting(db, sweep["key"], number, name, number, columns, now)
    counter.store(db, now)
    return trials.get(db, sweep["key"], number)


def enqueue_run(
    db: Connection, sweep: Row, settings: Mapping[str, Any], name: str, user: int, now: float
) -> Row:
    """The same for a scheduler. It watches the trial's run, which therefore is there at once."""
    trial = enqueue(db, sweep, settings, name, None, now)
    nobody = Claim(agent=0, user=user, kind="stock", host="", pid=None)
    key = create_runs(db, sweep, [NewRun(nobody, trial["id"], name, settings)], now)
    trials.update(db, trial, run=key)
    return trials.get(db, sweep["key"], trial["number"])


class _Counter:
    """The sweep's counters, written once for all claims of a transaction."""

    def __init__(self, sweep: Row, rules: Rules, account: Account | None = None) -> None:
        self._key: int = sweep["key"]
        self._rules = rules
        self._values: dict[str, Any] = dict(sweep)
        self._tried = frozenset(json.loads(sweep["tried"]))
        self._account = account
        self._first = sweep["trials"]

    def has_more(self) -> bool:
        new = self._values["trials"] - self._first
        has_room = self._account is None or self._account.has_room(new)
        return has_room and sweeps.has_more(self._values, self._rules)

    @property
    def place(self) -> tuple[int, int]:
        """The next setting, and which of its seeds."""
        setting, seed = divmod(self._values["drawn"], self._rules.seeds)
        return setting, seed

    def pass_on(self) -> None:
        self._values["drawn"] = sweeps.past_tried(
            self._values["drawn"] + 1, self._rules.seeds, self._tried
        )

    def next_number(self) -> int:
        self._values["trials"] += 1
        return int(self._values["trials"])

    def store(self, db: Connection, now: float) -> None:
        values = self._values
        db.execute(
            "UPDATE sweeps SET drawn = ?, trials = ?, updated_at = ?, "
            "started_at = CASE WHEN ? THEN coalesce(started_at, ?) ELSE started_at END "
            "WHERE key = ?",
            (values["drawn"], values["trials"], now, values["trials"], now, self._key),
        )


def _waiting(db: Connection, sweep: int, most: int) -> list[Row]:
    return db.execute(
        "SELECT * FROM trials WHERE sweep = ? AND state = 'waiting' ORDER BY place LIMIT ?",
        (sweep, most),
    ).fetchall()


def was_handed(db: Connection, sweep: int, token: str) -> bool:
    """Whether the claim with this token was made before, and its trial still runs."""
    return _claimed_before(db, sweep, [token]).get(token) is not None


def _claimed_before(db: Connection, sweep: int, tokens: Sequence[str]) -> dict[str, int | None]:
    """Which claims with these tokens were made before, and the trials that they came to.

    None: that is over. Who asks again gets nothing new under an old token.
    """
    rows = db.execute(
        "SELECT attempts.token, attempts.number AS known, trials.number, trials.attempt, "
        # In this order: few tokens are known, and a sweep has many trials.
        "trials.state FROM json_each(?) AS asked "
        "CROSS JOIN attempts ON attempts.token = asked.value "
        "CROSS JOIN trials ON trials.run = attempts.run WHERE trials.sweep = ?",
        (json.dumps(tokens), sweep),
    )
    return {
        row["token"]: row["number"]
        if row["state"] == "running" and row["attempt"] == row["known"]
        else None
        for row in rows
    }


def _read_handed(db: Connection, sweep: int, numbers: Sequence[int | None]) -> list[Handed | None]:
    """What was handed out, as it stands in the store now."""
    wanted = json.dumps([number for number in numbers if number is not None])
    taken = db.execute(
        "SELECT trials.*, agents.host AS host FROM trials "
        "LEFT JOIN agents ON agents.key = trials.agent "
        "WHERE trials.sweep = ? AND trials.number IN (SELECT value FROM json_each(?))",
        (sweep, wanted),
    ).fetchall()
    keys = [trial["run"] for trial in taken]
    rows = {row["key"]: row for row in runs.by_keys(db, keys)}
    handed = {
        trial["number"]: Handed(
            trial,
            rows[trial["run"]],
            count_rows(db, trial["run"], HISTORY) if trial["attempts"] > 1 else 0,
        )
        for trial in taken
    }
    return [None if number is None else handed[number] for number in numbers]


def _take(db: Connection, sweep: Row, trial: Row, claim: Claim, until: float, now: float) -> int:
    """Hand out a trial that waits: one that was cut off, is tried again, or was drawn elsewhere."""
    key = trial["run"]
    if key is None:
        run = NewRun(claim, trial["id"], trial["name"], json.loads(trial["settings"]))
        key = create_runs(db, sweep, [run], now)
    elif not trial["attempts"]:
        # A scheduler's: the run was there before anybody had it.
        runs.update(db, key, user=claim.user, host=claim.host)
    number = trial["attempts"] + 1
    if claim.kind == OWN:
        number = attempts.begin(
            db,
            key,
            token=claim.token or f"{claim.agent}.{trial['number']}.{number}",
            host=claim.host,
            pid=claim.pid or 0,
            now=now,
            at_least=number,
            agent=claim.agent,
        )
    else:
        runs.update(db, key, state="pending", stop_asked=0, preempting=0, exit_code=None)
    trials.move(
        db,
        trial,
        "claim",
        run=key,
        clients=clients.count(db, key),
        agent=claim.agent,
        attempt=number,
        attempts=trial["attempts"] + 1,
        lease=until,
        is_seen=0,
        began_at=now,
        started_at=trial["started_at"] or now,
        ended_at=None,
        exit_code=None,
        rewound_to=None,
    )
    return int(trial["number"])


def _draw(new: NewTrials, counter: _Counter, claim: Claim) -> int | None:
    setting, seed = counter.place
    drawn = new.draw(setting, seed)
    if drawn is None:
        return None
    counter.pass_on()
    number = counter.next_number()
    new.add(claim, number, setting, seed, drawn)
    return number
