"""The ledger, things happening in any order: nothing runs twice at once, is lost, or repeated."""

from __future__ import annotations

import sqlite3
from collections import Counter
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from runyard.server.store import (
    agents,
    claims,
    deletion,
    leases,
    runs,
    settling,
    streams,
    sweep_changes,
    sweeps,
    trials,
)
from runyard.server.store.claims import Handed
from runyard.server.store.migrations import migrate
from runyard.server.store.new_trials import Claim
from runyard.server.store.streams import Post
from runyard.server.sweeps.creation import new_sweep
from runyard.server.sweeps.drawing import Drawing
from runyard.server.sweeps.files import read_file

POINTS = 7
FILE = read_file(
    {
        "method": "grid",
        "metric": {"name": "loss"},
        "parameters": {"x": {"values": list(range(POINTS))}},
        "runyard": {"stop_after_failures": 0, "retries": {"program": 1, "node": 3}},
    }
)
CAUSES = (
    (0, None), (1, None), (75, None), (-9, None), (-15, "time"), (-15, "preempted"), (-9, "memory"),
)  # fmt: skip
AGENTS = st.integers(0, 3)


class Ledger(RuleBasedStateMachine):
    """Two agents of ours and two of W&B's on a small grid, with a clock of our own."""

    def __init__(self) -> None:
        super().__init__()
        self.store = sqlite3.connect(":memory:", isolation_level=None)
        self.store.row_factory = sqlite3.Row
        self.store.execute("PRAGMA foreign_keys = ON")
        migrate(self.store)
        self.store.execute("INSERT INTO users (key, name, created_at) VALUES (1, 'ada', 0)")
        self.now = 1000.0
        self.tokens = 0
        # Who may think that it has which trial: (trial, attempt) → agent.
        self.held: dict[tuple[int, int], int] = {}
        self.last_claim: dict[int, tuple[str, Handed | None]] = {}

    @initialize()
    def begin(self) -> None:
        row = new_sweep(
            self.store, FILE, entity="ada", project="birds", user=1, name=None, folder=None,
            seed=1, prior=[], now=self.now,
        )  # fmt: skip
        self.sweep: int = row["key"]
        self.agents = [
            agents.begin(
                self.store, self.sweep, user=1, kind=kind, token=None, host="n", pid=1, slots=2,
                now=self.now,
            )["key"]
            for kind in ("own", "own", "stock", "stock")
        ]  # fmt: skip

    def teardown(self) -> None:
        if hasattr(self, "sweep"):
            self._finish()
        self.store.close()

    @rule(who=st.lists(AGENTS, min_size=1, max_size=3))
    def claim(self, who: list[int]) -> None:
        """Several ask at once."""
        asked = [self._claim_of(number) for number in who]
        given = self._hand_out(asked)
        for number, one, handed in zip(who, asked, given, strict=True):
            self.last_claim[number] = (one.token or "", handed)
            if handed is not None:
                self._note(self.agents[number], handed)

    @rule(number=st.integers(0, 1))
    def repeat_a_claim(self, number: int) -> None:
        """No answer came; what was given then is given again, and nothing else."""
        if number not in self.last_claim:
            return
        token, before = self.last_claim[number]
        if before is None:
            return
        claim = Claim(self.agents[number], 1, "own", "n", 1, token)
        (again,) = self._hand_out([claim])
        place = (before.trial["number"], before.attempt)
        if again is None:
            assert self._state(place[0]) != ("running", self.agents[number], place[1])
        else:
            assert (again.trial["number"], again.attempt) == place

    @rule(number=AGENTS)
    def renew(self, number: int) -> None:
        agent = self.agents[number]
        mine = [place for place, holder in self.held.items() if holder == agent]
        for stop in agents.renew(self.store, agent, mine, self.now).stops:
            assert stop.why == "lost"
            del self.held[(stop.trial, stop.attempt)]

    @precondition(lambda self: self.held)
    @rule(data=st.data(), end=st.sampled_from(CAUSES))
    def end(self, data: st.DataObject, end: tuple[int, str | None]) -> None:
        """An attempt ends, and its agent, or its client, tells of it; maybe twice, maybe late."""
        place = data.draw(st.sampled_from(sorted(self.held)))
        agent = self.held.pop(place)
        code, cause = end
        for _ in range(data.draw(st.integers(1, 2))):
            if agent in self.agents[:2]:
                agents.end_attempt(
                    self.store, agent, *place, exit_code=code, cause=cause, ended_at=self.now,
                    now=self.now,
                )  # fmt: skip
            elif self._state(place[0])[2] == place[1]:
                self._post(place[0], Post(complete=True, exit_code=code))

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def log(self, data: st.DataObject) -> None:
        place = data.draw(st.sampled_from(sorted(self.held)))
        if self._state(place[0])[2] == place[1]:
            rows = ['{"loss": 1.0}'] * data.draw(st.integers(0, 2))
            self._post(place[0], Post(rows={0: (data.draw(st.integers(0, 5)), rows)}))

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def die(self, data: st.DataObject) -> None:
        """A program goes without a word; its agent too, or it forgets."""
        del self.held[data.draw(st.sampled_from(sorted(self.held)))]

    @rule(seconds=st.floats(1.0, leases.LEASE_SECONDS * 1.5))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        leases.lose_silent(self.store, self.now)

    @rule()
    def the_server_is_away(self) -> None:
        before = self._rows()
        self.now += leases.LEASE_SECONDS * 10
        leases.extend_all(self.store, self.now)
        leases.lose_silent(self.store, self.now)
        assert [(row["state"], row["attempt"]) for row in before] == [
            (row["state"], row["attempt"]) for row in self._rows()
        ]

    @rule(number=AGENTS)
    def leave(self, number: int) -> None:
        agent = self.agents[number]
        self.held = {place: holder for place, holder in self.held.items() if holder != agent}
        agents.leave(self.store, agent, "", self.now)

    @rule(number=st.integers(2, 3), data=st.data())
    def heartbeat(self, number: int, data: st.DataObject) -> None:
        """W&B's agent tells which of its runs live; the others have ended without a word."""
        agent = self.agents[number]
        mine = sorted(place for place, holder in self.held.items() if holder == agent)
        alive = [place for place in mine if data.draw(st.booleans())]
        for place in set(mine) - set(alive):
            del self.held[place]
        ids = [trials.get(self.store, self.sweep, trial)["id"] for trial, _ in alive]
        agents.hear_stock(self.store, agent, ids, 0.0, self.now)

    @rule(state=st.sampled_from(("paused", "running", "finished", "canceled", "running")))
    def steer(self, state: str) -> None:
        now = sweeps.get(self.store, self.sweep)["state"]
        if state != "paused" or now == "running":
            sweep_changes.set_state(self.store, self.sweep, state, self.now)
        if state == "canceled":
            self.held.clear()  # They are told to end, and do; who is late is refused.
            for row in self._rows():
                if row["state"] == "running":
                    settling.settle(self.store, row, "canceled", self.now)

    @rule()
    def retry(self) -> None:
        sweep_changes.retry(self.store, self.sweep, None, self.now)

    @precondition(lambda self: any(row["run"] for row in self._rows()))
    @rule(data=st.data())
    def delete_a_run(self, data: st.DataObject) -> None:
        rows = [row for row in self._rows() if row["run"] is not None]
        row = data.draw(st.sampled_from(rows))
        self.held.pop((row["number"], row["attempt"]), None)
        self.last_claim.clear()  # With the run goes what is known of its claims.
        deletion.delete_run(self.store, row["run"], self.now)

    @invariant()
    def each_point_is_one_trial(self) -> None:
        if not hasattr(self, "sweep"):
            return
        row = sweeps.get(self.store, self.sweep)
        alive = [one for one in self._rows() if one["cause"] != "deleted"]
        points = Counter(one["setting"] for one in alive)
        assert set(points.values()) <= {1}, points
        assert set(points) == set(range(row["drawn"])), "a point was passed over"
        for one in alive:
            assert (one["lease"] is not None) == (one["state"] == "running")
            assert one["state"] != "running" or one["run"] is not None

    def _note(self, agent: int, handed: Handed) -> None:
        """A trial goes to somebody: nobody else may have it who was not given up."""
        number = handed.trial["number"]
        others = [place for place in self.held if place[0] == number]
        # Whoever had it before was lost to us: it will hear so when it speaks.
        assert all(place[1] < handed.attempt for place in others)
        assert self._state(number) == ("running", agent, handed.attempt)
        self.held[(number, handed.attempt)] = agent

    def _claim_of(self, number: int) -> Claim:
        self.tokens += 1
        is_own = number < 2
        return Claim(
            self.agents[number],
            1,
            "own" if is_own else "stock",
            "n",
            1,
            f"t{self.tokens}" if is_own else None,
        )

    def _hand_out(self, asked: list[Claim]) -> list[Handed | None]:
        before = {
            row["number"]: (row["agent"], row["attempt"])
            for row in self._rows()
            if row["state"] == "running"
        }
        drawing = Drawing(FILE.sweep, 1)
        served = claims.hand_out(self.store, self.sweep, asked, drawing, self.now)
        for one, handed in zip(asked, served.given, strict=True):
            if handed is not None and handed.trial["number"] in before:
                # At work already: only the very same claim gets it again.
                assert before[handed.trial["number"]] == (one.agent, handed.attempt)
        fresh = [one.trial["number"] for one in served.given if one is not None]
        assert len(set(fresh)) == len(fresh)
        return list(served.given)

    def _finish(self) -> None:
        """Whatever has happened: with one patient agent, every point comes to its end."""
        for row in self._rows():
            if row["state"] == "running":
                settling.settle(self.store, row, "preempted", self.now)
        sweep_changes.set_state(self.store, self.sweep, "running", self.now)
        sweep_changes.retry(self.store, self.sweep, None, self.now)
        for _ in range(POINTS * 3):
            (handed,) = self._hand_out([self._claim_of(0)])
            if handed is None:
                break
            agents.end_attempt(
                self.store, self.agents[0], handed.trial["number"], handed.attempt, exit_code=0,
                cause=None, ended_at=self.now, now=self.now,
            )  # fmt: skip
        assert sweeps.get(self.store, self.sweep)["state"] == "finished"
        done = [row for row in self._rows() if row["cause"] != "deleted"]
        assert {row["state"] for row in done} <= {"finished"}
        assert sorted(row["setting"] for row in done) == list(range(POINTS))

    def _post(self, number: int, post: Post) -> None:
        trial = trials.get(self.store, self.sweep, number)
        if trial["run"] is not None:
            run = runs.by_key(self.store, trial["run"])
            assert run is not None
            streams.record(self.store, "ada", "birds", run["id"], post, self.now)

    def _rows(self) -> list[Any]:
        if not hasattr(self, "sweep"):
            return []
        return trials.of_sweep(self.store, self.sweep)

    def _state(self, number: int) -> tuple[str, int, int]:
        row = trials.get(self.store, self.sweep, number)
        return row["state"], row["agent"], row["attempt"]


Ledger.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TestLedger = Ledger.TestCase
