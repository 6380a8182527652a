"""A ledger in memory with a clock of its own, and a sweep in it: for tests of the store alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from functools import cache
from typing import Any

from runyard.server.processes import attempts
from runyard.server.runs import runs
from runyard.server.store.migrations import migrate
from runyard.server.store.sql import Row
from runyard.server.sweeps.ledger import agents, claims, trials
from runyard.server.sweeps.ledger.claims import Handed
from runyard.server.sweeps.ledger.new_trials import OWN, Claim
from runyard.server.sweeps.serving.creation import new_sweep, read_file
from runyard.server.sweeps.serving.drawing import Drawing
from runyard.server.tracking import streams
from runyard.server.tracking.streams import Post
from runyard.server.tracking.upserts import Upsert, upsert

GRID: Mapping[str, Any] = {
    "method": "grid",
    "metric": {"name": "loss"},
    "parameters": {"x": {"values": [1, 2, 3, 4]}},
    "runyard": {"stop_after_failures": 0, "retries": {"program": 1, "node": 3}},
}


def _connect() -> sqlite3.Connection:
    store = sqlite3.connect(":memory:", isolation_level=None)
    store.row_factory = sqlite3.Row
    store.execute("PRAGMA foreign_keys = ON")
    return store


@cache
def _template() -> sqlite3.Connection:
    """An empty ledger of ada's; a copy of it is made sooner than another."""
    store = _connect()
    migrate(store)
    store.execute("INSERT INTO users (key, name, created_at) VALUES (1, 'ada', 0)")
    return store


class LedgerInMemory:
    """The calls that the routes make, each in a word."""

    def __init__(self, config: Mapping[str, Any] = GRID) -> None:
        self.store = _connect()
        _template().backup(self.store)
        self.now = 1000.0
        self.file = read_file(dict(config))
        row = new_sweep(
            self.store, self.file, entity="ada", project="birds", user=1, name=None, folder=None,
            seed=1, prior=[], now=self.now,
        )  # fmt: skip
        self.sweep: int = row["key"]
        self._tokens = 0

    def agent(self, kind: str = OWN) -> int:
        new = agents.NewAgent(1, kind, "n", pid=1, slots=2)
        row = agents.begin(self.store, self.sweep, new, self.now)
        key: int = row["key"]
        return key

    def claim_of(self, agent: int, kind: str = OWN, token: str | None = None) -> Claim:
        if kind == OWN and token is None:
            self._tokens += 1
            token = f"t{self._tokens}"
        return Claim(agent, 1, kind, "n", 1, token)

    def hand_out(self, *asked: Claim) -> list[Handed | None]:
        drawing = Drawing(self.file.sweep, 1)
        return list(claims.hand_out(self.store, self.sweep, asked, drawing, self.now).handed)

    def claim(self, agent: int, kind: str = OWN) -> Handed:
        (handed,) = self.hand_out(self.claim_of(agent, kind))
        assert handed is not None
        return handed

    def renew(self, agent: int, *held: tuple[int, int]) -> list[str]:
        """(trial, attempt) of what it has; why which are to end."""
        return [stop.why for stop in agents.renew(self.store, agent, held, self.now).stops]

    def end(
        self,
        agent: int,
        trial: int,
        attempt: int,
        code: int,
        cause: str | None = None,
        ended_at: float | None = None,
    ) -> None:
        agents.end_attempt(
            self.store, agent, trial, attempt, exit_code=code, cause=cause,
            ended_at=self.now if ended_at is None else ended_at, now=self.now,
        )  # fmt: skip

    def begin_client(self, trial: int, key_id: str = "") -> None:
        """The program calls `wandb.init` and goes on where its run is."""
        run = self.run(trial)
        said = Upsert(
            id=run["id"], entity="ada", project="birds", user=1, host="n", key=run["key"],
            key_id=key_id,
        )  # fmt: skip
        upsert(self.store, said, self.now)

    def post(self, trial: int, post: Post) -> None:
        streams.record(self.store, "ada", "birds", self.run(trial)["id"], post, self.now)

    def trial(self, number: int) -> Row:
        return trials.get(self.store, self.sweep, number)

    def trials(self) -> list[Row]:
        return trials.of_sweep(self.store, self.sweep)

    def run(self, trial: int) -> Row:
        run = runs.by_key(self.store, self.trial(trial)["run"])
        assert run is not None
        return run

    def attempts(self, trial: int) -> list[Row]:
        return attempts.of_run(self.store, self.trial(trial)["run"])
