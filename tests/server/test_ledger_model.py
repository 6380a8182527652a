"""The ledger beside its model: everything that can happen to trials, agents, leases and runs.

In any order, with repeats, late words and restarts. `RUNYARD_LEDGER_EXAMPLES=10000` tries so many
stories instead of a few. The invariants are those of docs/design.md.
"""

from __future__ import annotations

import json
import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from runyard.end_causes import cause_of_exit
from runyard.server.sweeps.ledger import agents, leases, settling, sweep_changes, sweeps
from runyard.server.tracking import deletion
from runyard.server.tracking.streams import Post
from tests.server.a_ledger import LedgerInMemory
from tests.server.ledger_model import OPEN, Model, Trial

POINTS = 5
RETRIES = {"program": 1, "node": 2}
CONFIG = {
    "method": "grid",
    "metric": {"name": "loss"},
    "parameters": {"x": {"values": list(range(POINTS))}},
    "runyard": {"stop_after_failures": 0, "retries": RETRIES},
}
EXAMPLES = os.environ.get("RUNYARD_LEDGER_EXAMPLES")
ENDS = st.sampled_from(
    [
        (0, None),
        (1, None),
        (75, None),
        (-9, None),
        (-15, "time"),
        (-15, "preempted"),
        (-9, "memory"),
    ]
)
LEASE = leases.LEASE_SECONDS
RUN_STATES = {
    "finished": ("finished",),
    "failed": ("failed", "crashed", "killed", "preempted"),
    "stopped": ("killed",),
    "canceled": ("killed", "failed", "crashed", "preempted", "pending"),
    "waiting": ("preempted", "failed", "crashed", "killed", "pending"),
}


class Ledger(RuleBasedStateMachine):
    """Two agents of ours and two of W&B's, with a clock of our own."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = LedgerInMemory(CONFIG)
        self.model = Model(POINTS, RETRIES)
        self.kinds = {self.ledger.agent(kind): kind for kind in ("own", "own", "stock", "stock")}
        # Who thinks that it has which trial: (trial, attempt) → agent. Some are wrong.
        self.held: dict[tuple[int, int], int] = {}
        self.tokens = ["t0"]

    def teardown(self) -> None:
        """Whatever has happened: with one patient agent, every trial comes to its end."""
        ledger, (agent, *_) = self.ledger, self.kinds
        for row in ledger.trials():
            if row["state"] == "running":
                settling.settle(ledger.store, row, "preempted", self.now)
        sweep_changes.set_state(ledger.store, ledger.sweep, "running", self.now)
        sweep_changes.retry(ledger.store, ledger.sweep, None, self.now)
        for number in range(POINTS + 1):
            (handed,) = ledger.hand_out(ledger.claim_of(agent, token=f"last{number}"))
            if handed is not None:
                ledger.end(agent, handed.trial["number"], handed.attempt, 0)
        ends = [row["state"] for row in ledger.trials() if row["cause"] != "deleted"]
        assert set(ends) <= {"finished", "stopped"}
        assert len(ends) == POINTS
        assert sweeps.get(ledger.store, ledger.sweep)["state"] == "finished"
        ledger.store.close()

    @property
    def now(self) -> float:
        return self.ledger.now

    def agent(self, data: st.DataObject, kind: str | None = None) -> int:
        keys = [key for key, agent_kind in self.kinds.items() if kind in (None, agent_kind)]
        return data.draw(st.sampled_from(keys))

    def place(self, data: st.DataObject, kind: str | None = None) -> tuple[Trial, int, int]:
        """One that somebody thinks it has: the trial, the attempt, and who."""
        places = sorted(
            place for place, agent in self.held.items() if kind in (None, self.kinds[agent])
        )
        number, attempt = data.draw(st.sampled_from(places))
        return self.model.trials[number], attempt, self.held[number, attempt]

    @rule(data=st.data(), count=st.integers(1, 4))
    def claim(self, data: st.DataObject, count: int) -> None:
        """Several ask in one round; some of them again, in this round or a later one."""
        asked = []
        for _ in range(count):
            agent = self.agent(data)
            token = None
            if self.kinds[agent] == "own":
                token = data.draw(st.sampled_from([*self.tokens[-3:], f"t{len(self.tokens)}"]))
                self.tokens += [token] if token not in self.tokens else []
            asked.append(self.ledger.claim_of(agent, self.kinds[agent], token))
        given = self.ledger.hand_out(*asked)
        for claim, handed in zip(asked, given, strict=True):
            number, is_known = self.model.claim(claim.token)
            assert number == (0 if handed is None else handed.trial["number"])
            if handed is not None and not is_known:
                trial = self.model.trials.get(number)
                assert trial is None or handed.attempt > max(trial.begins, default=0)
                self.model.take(number, claim.agent, handed.attempt, claim.token, self.now)
                self.held[number, handed.attempt] = claim.agent
        if None in given:
            self.model.conclude()

    @rule(data=st.data())
    def renew(self, data: st.DataObject) -> None:
        agent = self.agent(data, "own")
        mine = [place for place, holder in self.held.items() if holder == agent]
        lost = agents.renew(self.ledger.store, agent, mine, self.now).stops
        for number, attempt in mine:
            trial = self.model.trials[number]
            if (trial.attempt, trial.agent) == (attempt, agent):
                self.model.hear(trial)
            is_held = trial.state == "running" and trial.attempt == attempt
            told = {stop.why for stop in lost if (stop.trial, stop.attempt) == (number, attempt)}
            assert is_held != ("lost" in told)

    @precondition(lambda self: "own" in {self.kinds[agent] for agent in self.held.values()})
    @rule(data=st.data(), end=ENDS, ago=st.floats(0, 2 * LEASE), times=st.integers(1, 2))
    def end(self, data: st.DataObject, end: tuple[int, str | None], ago: float, times: int) -> None:
        """Told by its agent, maybe twice, maybe when the trial has long been somebody else's."""
        trial, attempt, agent = self.place(data, "own")
        at = self.now - ago
        for _ in range(times):
            self.ledger.end(agent, trial.number, attempt, *end, ended_at=at)
        if trial.state != "deleted":
            self.model.end(trial, attempt, *end, max(at, trial.begins[attempt]))
        if data.draw(st.booleans()):
            del self.held[trial.number, attempt]

    @precondition(lambda self: self.held)
    @rule(data=st.data(), rows=st.integers(0, 2), code=st.sampled_from([None, None, 0, 1, 75]))
    def client(self, data: st.DataObject, rows: int, code: int | None) -> None:
        """The program's client logs, or says its last words; one of an older attempt may, too."""
        trial, attempt, _ = self.place(data)
        if trial.state == "deleted":
            return
        is_current = attempt == trial.attempt and (trial.state == "running" or trial.lost)
        if is_current and trial.client != attempt:
            self.ledger.begin_client(trial.number)
            self.model.hear(trial)
            trial.client = attempt
        if not trial.client:
            return
        lines = ['{"loss": 1.0}'] * rows
        post = Post(rows={0: (trial.rows, lines)}, complete=code is not None, exit_code=code or 0)
        self.ledger.post(trial.number, post)
        trial.rows += rows
        if trial.client != trial.attempt:
            return  # Rows are all that it can tell.
        is_open = (
            trial.lost is None and trial.state == "running" and self.kinds[trial.agent] == "own"
        )
        if code is not None:
            trial.last_words = (code, self.now)
            if is_open or (trial.state != "running" and trial.lost is None):
                return  # Its process may go on; its agent will tell.
        self.model.hear(trial)
        if code is not None and trial.state == "running":
            self.model.settle(trial, cause_of_exit(code), self.now)

    @precondition(lambda self: "own" in {self.kinds[agent] for agent in self.held.values()})
    @rule(data=st.data())
    def console(self, data: st.DataObject) -> None:
        trial, attempt, _ = self.place(data, "own")
        if trial.state == "deleted":
            return
        run = self.ledger.run(trial.number)["key"]
        leases.hear_console(self.ledger.store, run, attempt, 0, b"x", self.now)
        if trial.attempt == attempt and attempt not in trial.told:
            self.model.hear(trial)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def die(self, data: st.DataObject) -> None:
        """A program goes without a word; its agent too, or it forgets."""
        trial, attempt, _ = self.place(data)
        del self.held[trial.number, attempt]

    @rule(seconds=st.floats(1.0, LEASE * 1.5))
    def time_passes(self, seconds: float) -> None:
        self.ledger.now += seconds
        silent = [row for row in self.ledger.trials() if row["state"] == "running"]
        silent = [row for row in silent if row["lease"] < self.now]
        leases.lose_silent(self.ledger.store, self.now)
        for row in sorted(silent, key=lambda row: (row["lease"], row["number"])):
            self.model.lose(self.model.trials[row["number"]], self.now)

    @rule(seconds=st.floats(-2 * LEASE, LEASE * 10))
    def the_server_is_away(self, seconds: float) -> None:
        """A restart, or a clock that is set, forwards or back: no lease runs out by that."""
        self.ledger.now = max(1000.0, self.now + seconds)
        leases.extend_all(self.ledger.store, self.now)
        assert leases.lose_silent(self.ledger.store, self.now) == set()

    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        agent = self.agent(data)
        agents.leave(self.ledger.store, agent, "", self.now)
        for trial in list(self.model.trials.values()):
            if (trial.state, trial.agent) == ("running", agent):
                self.model.lose(trial, self.now)

    @rule(data=st.data())
    def heartbeat(self, data: st.DataObject) -> None:
        """W&B's agent tells which of its runs live; the others have ended without a word."""
        agent = self.agent(data, "stock")
        mine = [
            trial
            for trial in self.model.trials.values()
            if (trial.state, trial.agent) == ("running", agent)
        ]
        gone = [trial for trial in mine if data.draw(st.booleans())]
        rows = {trial.number: self.ledger.trial(trial.number) for trial in mine}
        alive = [row["id"] for number, row in rows.items() if self.model.trials[number] not in gone]
        was_heard = {
            trial.number: bool(rows[trial.number]["is_seen"])
            or self.ledger.run(trial.number)["state"] != "pending"
            for trial in gone
        }
        agents.hear_stock(self.ledger.store, agent, alive, float("inf"), self.now)
        for trial in gone:
            if was_heard[trial.number] or trial.stop is not None:
                self.model.lose(trial, self.now)
            else:
                self.held.pop((trial.number, trial.attempt), None)
                self.model.hand_back(trial)

    @precondition(lambda self: any(one.begins for one in self.model.trials.values()))
    @rule(data=st.data(), is_deleted=st.booleans())
    def stop_or_delete(self, data: st.DataObject, is_deleted: bool) -> None:
        begun = [one for one in self.model.trials.values() if one.begins and one.state != "deleted"]
        if not begun:
            return
        trial = data.draw(st.sampled_from(begun))
        run = self.ledger.run(trial.number)
        if is_deleted:
            deletion.delete_run(self.ledger.store, run["key"], self.now)
            self.model.delete(trial)
        else:
            settling.ask_to_end(self.ledger.store, run, "stopped", self.now)
            self.model.stop(trial)

    @rule(state=st.sampled_from(("paused", "running", "finished", "canceled")))
    def steer(self, state: str) -> None:
        if state == "paused" and self.model.state != "running":
            return
        sweep_changes.set_state(self.ledger.store, self.ledger.sweep, state, self.now)
        self.model.steer(state)

    @rule()
    def retry(self) -> None:
        sweep_changes.retry(self.ledger.store, self.ledger.sweep, None, self.now)
        self.model.retry()

    @invariant()
    def the_store_is_as_the_model(self) -> None:
        rows = {row["number"]: row for row in self.ledger.trials()}
        assert set(rows) == set(self.model.trials)
        for number, trial in self.model.trials.items():
            row = rows[number]
            state = "deleted" if row["cause"] == "deleted" else row["state"]
            assert (state, row["setting"]) == (trial.state, trial.setting), number
            if trial.state == "deleted":
                continue
            assert json.loads(row["tries"]) == trial.tries, number
            assert row["seconds"] == pytest.approx(trial.seconds, abs=1e-6), number
            assert (row["stop"], row["attempt"]) == (trial.stop, trial.attempt), number
            assert (row["lost"] is not None) == (trial.lost is not None), number
            if trial.state == "running":
                assert row["agent"] == trial.agent
        waiting = sorted(
            (row for row in rows.values() if row["state"] == "waiting"),
            key=lambda row: row["place"],
        )
        assert [row["number"] for row in waiting] == self.model.waiting
        assert sweeps.get(self.ledger.store, self.ledger.sweep)["state"] == self.model.state

    @invariant()
    def a_lease_is_held_by_who_runs_and_by_nobody_else(self) -> None:
        for row in self.ledger.trials():
            assert (row["lease"] is not None) == (row["state"] == "running")
            assert row["lease"] is None or row["lease"] <= self.now + LEASE

    @invariant()
    def each_point_of_the_grid_is_one_trial(self) -> None:
        rows = [row for row in self.ledger.trials() if row["cause"] != "deleted"]
        points = Counter(row["setting"] for row in rows)
        assert set(points.values()) <= {1}
        assert set(points) == set(range(self.model.drawn))

    @invariant()
    def trial_run_and_attempt_agree(self) -> None:
        for row in self.ledger.trials():
            if row["run"] is None:
                continue
            run = self.ledger.run(row["number"])
            still_open = [
                one["number"]
                for one in self.ledger.attempts(row["number"])
                if one["ended_at"] is None
            ]
            is_own = row["agent"] is not None and self.kinds[row["agent"]] == "own"
            if row["state"] == "running":
                assert still_open == ([row["attempt"]] if is_own else [])
                assert run["state"] in (("running",) if is_own else ("running", "pending"))
            else:
                assert still_open == []
                assert run["state"] in RUN_STATES[row["state"]], (row["state"], run["state"])

    @invariant()
    def seconds_are_the_sum_of_the_attempts(self) -> None:
        rows = self.ledger.trials()
        for row in rows:
            found = [] if row["run"] is None else self.ledger.attempts(row["number"])
            if row["run"] is not None and len(found) == len(
                self.model.trials[row["number"]].begins
            ):
                spans = [one["ended_at"] - one["started_at"] for one in found if one["ended_at"]]
                assert row["seconds"] == pytest.approx(sum(spans), abs=1e-6)
        sweep = sweeps.get(self.ledger.store, self.ledger.sweep)
        finished = [row for row in rows if row["state"] == "finished"]
        if all(row["cause"] != "deleted" for row in rows):
            total = sum(row["seconds"] for row in finished)
            assert sweep["busy_seconds"] == pytest.approx(total, abs=1e-6)
            assert sweep["ended_trials"] == len(finished)

    @invariant()
    def nothing_waits_without_a_reason(self) -> None:
        """A sweep that is open has something at work, or something to hand out."""
        row = sweeps.get(self.ledger.store, self.ledger.sweep)
        if row["state"] in OPEN:
            counts = sweeps.open_counts(self.ledger.store, self.ledger.sweep)
            has_more = sweeps.has_more(row, sweeps.rules_of(row))
            assert counts.get("running") or counts.get("waiting") or has_more


Ledger.TestCase.settings = settings(
    max_examples=int(EXAMPLES or 60),
    # The same few each time; new ones where somebody asks for many.
    derandomize=not EXAMPLES,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TestLedger = Ledger.TestCase
