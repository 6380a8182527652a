"""New trials, many in one go: each with its run, and with its first attempt where it is ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from sqlite3 import Connection
from typing import Any, Protocol

from runyard.server.store import json_text
from runyard.server.store.names import new_id
from runyard.server.store.sql import Row
from runyard.server.sweeps.ledger import trials

OWN = "own"

_RUN = (
    "INSERT INTO runs (key, id, project, user, name, state, config, sweep, host, folder, "
    "created_at, started_at, heartbeat_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_ATTEMPT = (
    "INSERT INTO attempts (run, number, token, host, pid, started_at, agent) "
    "VALUES (?, 1, ?, ?, ?, ?, ?)"
)
_TRIAL = (
    "INSERT INTO trials (sweep, number, run, id, name, setting, point, settings, state, agent, "
    "attempt, attempts, lease, began_at, created_at, started_at) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'running', ?, 1, 1, ?, ?, ?, ?)"
)


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

    def name(self, settings: Mapping[str, Any], is_taken: trials.IsTaken) -> str:
        """A name that no trial of the sweep has."""


@dataclass(frozen=True)
class NewRun:
    """The run that a trial is to be tracked as."""

    claim: Claim
    id: str
    name: str
    settings: Mapping[str, Any]

    @property
    def is_own(self) -> bool:
        return self.claim.kind == OWN


@dataclass(frozen=True)
class _New:
    number: int
    setting: int
    drawn: Drawn
    run: NewRun


class NewTrials:
    """What a transaction draws for a sweep. In memory until `store`, which writes all of it."""

    def __init__(self, db: Connection, sweep: Row, draw: Draw) -> None:
        self._connection = db
        self._sweep = sweep
        self._draw = draw
        self._new: list[_New] = []
        self._names: set[str] = set()
        self._settings: dict[int, Drawn] = {}

    def draw(self, setting: int, seed: int) -> Drawn | None:
        """A setting that is new, or that another of its seeds had before; None: not now."""
        if seed == 0:
            drawn = self._draw.setting(setting)
        else:
            drawn = self._settings.get(setting) or self._stored(setting)
        if drawn is not None:
            self._settings[setting] = drawn
        return drawn

    def add(self, claim: Claim, number: int, setting: int, seed: int, drawn: Drawn) -> None:
        settings = self._draw.with_seed(drawn.settings, seed)
        name = self._draw.name(settings, self._is_taken)
        self._names.add(name)
        run = NewRun(claim, new_id(), name, settings)
        self._new.append(_New(number, setting, drawn, run))

    def store(self, until: float, now: float) -> None:
        """Write everything; each trial is leased until then."""
        if not self._new:
            return
        sweep = self._sweep["key"]
        first = create_runs(self._connection, self._sweep, [new.run for new in self._new], now)
        own = [(key, new.run) for key, new in enumerate(self._new, first) if new.run.is_own]
        self._connection.executemany(
            _ATTEMPT,
            [
                (
                    key,
                    run.claim.token or f"{run.claim.agent}.{run.id}",
                    run.claim.host,
                    run.claim.pid or 0,
                    now,
                    run.claim.agent,
                )
                for key, run in own
            ],
        )
        self._connection.executemany(
            _TRIAL,
            [
                (
                    sweep,
                    new.number,
                    key,
                    new.run.id,
                    new.run.name,
                    new.setting,
                    None if new.drawn.point is None else json_text.dump(list(new.drawn.point)),
                    json_text.dump(new.run.settings),
                    new.run.claim.agent,
                    until,
                    now,
                    now,
                    now,
                )
                for key, new in enumerate(self._new, first)
            ],
        )

    def _is_taken(self, name: str) -> bool:
        return name in self._names or trials.is_taken(self._connection, self._sweep["key"], name)

    def _stored(self, setting: int) -> Drawn | None:
        row = self._connection.execute(
            "SELECT point, settings FROM trials WHERE sweep = ? AND setting = ? LIMIT 1",
            (self._sweep["key"], setting),
        ).fetchone()
        if row is None:
            return None
        point = None if row["point"] is None else json_text.parse(row["point"])
        return Drawn(point, json_text.parse(row["settings"]))


def create_runs(db: Connection, sweep: Row, new: Sequence[NewRun], now: float) -> int:
    """Runs for trials of a sweep, with keys in a row; the first of them."""
    row = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'runs'").fetchone()
    # Nobody else writes within this transaction.
    first: int = 1 if row is None else row["seq"] + 1
    within = sweep["folder"]
    folder = None if within is None else str(PurePosixPath(within) / "sweeps" / sweep["id"])
    db.executemany(
        _RUN,
        [
            (
                key,
                run.id,
                sweep["project"],
                run.claim.user,
                run.name,
                "running" if run.is_own else "pending",
                json_text.dump({name: {"value": value} for name, value in run.settings.items()}),
                sweep["id"],
                run.claim.host,
                None if folder is None else f"{folder}/{run.name}",
                now,
                now if run.is_own else None,
                now,
            )
            for key, run in enumerate(new, first)
        ],
    )
    return first
