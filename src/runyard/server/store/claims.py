"""Handing out trials: many claims in one transaction.

A claim is whole or not at all: the trial is running and leased, its run is there, and its attempt
has begun. Who asks again with the same token gets the same trial.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Protocol

from runyard.server.ledger.rules import Rules
from runyard.server.store import attempts, leases, runs, settling, sweeps, trials
from runyard.server.store.history import HISTORY, count_rows
from runyard.server.store.names import new_run_id
from runyard.server.store.runs import Row

OWN = "own"


@dataclass(frozen=True)
class Claim:
    """An agent with a free slot. Only our own have tokens, and attempts that are recorded."""

    agent: int
    user: int
    kind: str
    host: str
    pid: int | None
    token: str | None = None


@dataclass(frozen=True)
class Drawn:
    """A new setting: where it is in the space, and what the run's config gets."""

    point: Sequence[float] | None
    settings: Mapping[str, Any]


class Draw(Protocol):
    """Where new settings come from. Called within the transaction: quick, and without effects."""

    def setting(self, number: int) -> Drawn | None:
        """The setting of that number, from zero on; None: not now."""

    def with_seed(self, settings: Mapping[str, Any], seed: int) -> dict[str, Any]:
        """The settings of a trial, with its seed if the sweep has some."""

    def name(self, connection: sqlite3.Connection, settings: Mapping[str, Any]) -> str:
        """A name that no trial of the sweep has."""


@dataclass(frozen=True)
class Handed:
    """What a claim came to: a trial with its run."""

    trial: Row
    run: Row
    # Rows that the run has from earlier attempts.
    steps: int = 0

    @property
    def attempt(self) -> int:
        number: int = self.trial["attempt"]
        return number

    @property
    def goes_on(self) -> bool:
        """Whether there were attempts before."""
        return bool(self.trial["attempts"] > 1)


@dataclass(frozen=True)
class Round:
    """What a number of claims came to, in their order; None: nothing for this one now."""

    given: Sequence[Handed | None]
    # Of the sweep, after these claims.
    state: str
    cause: str | None
    # Whether new trials can still be drawn.
    has_more: bool


def hand_out(
    connection: sqlite3.Connection,
    sweep: int,
    claims: Sequence[Claim],
    draw: Draw,
    now: float,
) -> Round:
    """Give each claim a trial, as far as there are some."""
    row = sweeps.by_key(connection, sweep)
    if row is None:
        return Round([None] * len(claims), "canceled", "the sweep is gone", False)
    rules = sweeps.rules_of(row)
    counter = _Counter(row, rules)
    before = _claimed_before(connection, sweep, claims)
    waiting = iter(_waiting(connection, sweep, len(claims)) if row["state"] == "running" else ())
    until = now + leases.LEASE_SECONDS
    numbers: list[int | None] = []
    for claim in claims:
        if claim.token is not None and claim.token in before:
            numbers.append(before[claim.token])
        elif (trial := next(waiting, None)) is not None:
            numbers.append(_take(connection, row, trial, claim, until, now))
        elif row["state"] == "running" and counter.has_more():
            numbers.append(_draw(connection, row, counter, draw, claim, until, now))
        else:
            numbers.append(None)
    given = _read_handed(connection, sweep, numbers)
    counter.store(connection, now)
    if None in given:
        # A grid that prior runs have done already ends here, with nothing to settle.
        settling.conclude(connection, sweep, now)
        row = sweeps.get(connection, sweep)
    return Round(given, row["state"], row["cause"], counter.has_more())


def enqueue(
    connection: sqlite3.Connection,
    sweep: Row,
    settings: Mapping[str, Any],
    name: str,
    mark: str,
    now: float,
) -> Row:
    """Add a trial that somebody else's controller has drawn; it waits for an agent.

    `mark` is what the controller calls it: called again with the same one, nothing changes.
    """
    known = trials.by_mark(connection, sweep["key"], mark)
    if known is not None:
        return known
    counter = _Counter(sweep, sweeps.rules_of(sweep))
    number = counter.next_number()
    _insert(
        connection,
        sweep["key"],
        number,
        {
            "id": new_run_id(),
            "name": name,
            "setting": number,
            "settings": json.dumps(settings),
            "mark": mark,
            "state": "waiting",
            # Behind those that were cut off.
            "place": trials.place_in_queue("tail", number),
            "created_at": now,
        },
    )
    counter.store(connection, now)
    return trials.get(connection, sweep["key"], number)


class _Counter:
    """The sweep's counters, written once for all claims of a transaction."""

    def __init__(self, sweep: Row, rules: Rules) -> None:
        self._key: int = sweep["key"]
        self._rules = rules
        self._values: dict[str, Any] = dict(sweep)
        self._tried = frozenset(json.loads(sweep["tried"]))

    def has_more(self) -> bool:
        return sweeps.has_more(self._values, self._rules)

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
        number: int = self._values["trials"]
        return number

    def store(self, connection: sqlite3.Connection, now: float) -> None:
        values = self._values
        connection.execute(
            "UPDATE sweeps SET drawn = ?, trials = ?, updated_at = ?, "
            "started_at = CASE WHEN ? THEN coalesce(started_at, ?) ELSE started_at END "
            "WHERE key = ?",
            (values["drawn"], values["trials"], now, values["trials"], now, self._key),
        )


def _waiting(connection: sqlite3.Connection, sweep: int, most: int) -> list[Row]:
    return connection.execute(
        "SELECT * FROM trials WHERE sweep = ? AND state = 'waiting' ORDER BY place LIMIT ?",
        (sweep, most),
    ).fetchall()


def _claimed_before(
    connection: sqlite3.Connection, sweep: int, claims: Sequence[Claim]
) -> dict[str, int | None]:
    """Which of these claims were made before, and the trials that they came to.

    None: that is over. Who asks again gets nothing new under an old token.
    """
    tokens = [claim.token for claim in claims if claim.token is not None]
    found = connection.execute(
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
        for row in found
    }


def _read_handed(
    connection: sqlite3.Connection, sweep: int, numbers: Sequence[int | None]
) -> list[Handed | None]:
    """What was handed out, as it stands in the store now."""
    wanted = json.dumps([number for number in numbers if number is not None])
    found = connection.execute(
        "SELECT trials.*, agents.host AS host FROM trials "
        "LEFT JOIN agents ON agents.key = trials.agent "
        "WHERE trials.sweep = ? AND trials.number IN (SELECT value FROM json_each(?))",
        (sweep, wanted),
    ).fetchall()
    rows = {row["key"]: row for row in runs.by_keys(connection, [one["run"] for one in found])}
    handed = {
        trial["number"]: Handed(
            trial,
            rows[trial["run"]],
            count_rows(connection, trial["run"], HISTORY) if trial["attempts"] > 1 else 0,
        )
        for trial in found
    }
    return [None if number is None else handed[number] for number in numbers]


def _take(
    connection: sqlite3.Connection, sweep: Row, trial: Row, claim: Claim, until: float, now: float
) -> int:
    """Hand out a trial that waits: one that was cut off, is tried again, or was drawn elsewhere."""
    key = trial["run"]
    if key is None:
        key = _create_run(
            connection, sweep, claim, trial["id"], trial["name"], json.loads(trial["settings"]), now
        )
    number = trial["attempts"] + 1
    if claim.kind == OWN:
        number = attempts.begin(
            connection,
            key,
            token=claim.token or f"{claim.agent}.{trial['number']}.{number}",
            host=claim.host,
            pid=claim.pid or 0,
            now=now,
            at_least=number,
        )
    else:
        runs.update(connection, key, state="pending", stop_asked=0, preempting=0, exit_code=None)
    trials.update(
        connection,
        trial,
        run=key,
        state="running",
        agent=claim.agent,
        attempt=number,
        attempts=trial["attempts"] + 1,
        lease=until,
        is_seen=0,
        began_at=now,
        started_at=trial["started_at"] or now,
        ended_at=None,
        exit_code=None,
    )
    taken: int = trial["number"]
    return taken


def _draw(
    connection: sqlite3.Connection,
    sweep: Row,
    counter: _Counter,
    draw: Draw,
    claim: Claim,
    until: float,
    now: float,
) -> int | None:
    setting, seed = counter.place
    drawn = draw.setting(setting) if seed == 0 else _same_setting(connection, sweep, setting)
    if drawn is None:
        return None
    counter.pass_on()
    settings = draw.with_seed(drawn.settings, seed)
    name = draw.name(connection, settings)
    run_id = new_run_id()
    key = _create_run(connection, sweep, claim, run_id, name, settings, now)
    if claim.kind == OWN:
        attempts.begin_first(
            connection,
            key,
            token=claim.token or f"{claim.agent}.{run_id}",
            host=claim.host,
            pid=claim.pid or 0,
            now=now,
        )
    number = counter.next_number()
    _insert(
        connection,
        sweep["key"],
        number,
        {
            "run": key,
            "id": run_id,
            "name": name,
            "setting": setting,
            "point": None if drawn.point is None else json.dumps(list(drawn.point)),
            "settings": json.dumps(settings),
            "state": "running",
            "agent": claim.agent,
            "attempt": 1,
            "attempts": 1,
            "lease": until,
            "began_at": now,
            "created_at": now,
            "started_at": now,
        },
    )
    return number


def _same_setting(connection: sqlite3.Connection, sweep: Row, setting: int) -> Drawn | None:
    """A setting that one of its seeds has drawn before."""
    found = connection.execute(
        "SELECT point, settings FROM trials WHERE sweep = ? AND setting = ? LIMIT 1",
        (sweep["key"], setting),
    ).fetchone()
    if found is None:
        return None
    point = None if found["point"] is None else json.loads(found["point"])
    return Drawn(point, json.loads(found["settings"]))


def _create_run(
    connection: sqlite3.Connection,
    sweep: Row,
    claim: Claim,
    run_id: str,
    name: str,
    settings: Mapping[str, Any],
    now: float,
) -> int:
    is_own = claim.kind == OWN
    folder = None
    if sweep["folder"] is not None:
        folder = str(PurePosixPath(sweep["folder"]) / "sweeps" / sweep["id"] / name)
    config = {key: {"value": value} for key, value in settings.items()}
    cursor = connection.execute(
        "INSERT INTO runs (id, project, user, name, state, config, sweep, host, folder, "
        "created_at, started_at, heartbeat_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            run_id,
            sweep["project"],
            claim.user,
            name,
            "running" if is_own else "pending",
            json.dumps(config),
            sweep["id"],
            claim.host,
            folder,
            now,
            now if is_own else None,
            now,
        ),
    )
    return cursor.lastrowid or 0


def _insert(
    connection: sqlite3.Connection, sweep: int, number: int, columns: Mapping[str, Any]
) -> None:
    names = "".join(f", {name}" for name in columns)
    # The names are ours.
    connection.execute(
        f"INSERT INTO trials (sweep, number{names}) "  # noqa: S608
        f"VALUES (?, ?{', ?' * len(columns)})",
        [sweep, number, *columns.values()],
    )
