"""Claims of agents for trials: one queue a sweep, whose claims are served many at a time.

All claims that wait in a queue when it is served share one transaction. A claim for which there is
nothing stays in line for as long as its agent wants to wait, and is served as soon as something
changes. One sweep's queue never waits for another's.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runyard.search.sweep import Sweep
from runyard.server.store.sql import Row
from runyard.server.store.store import Store
from runyard.server.sweeps.ledger import agents, claims, leases, results, settling, sweeps
from runyard.server.sweeps.ledger.agents import NewAgent, NoAgent
from runyard.server.sweeps.ledger.claims import Handed, Round
from runyard.server.sweeps.ledger.new_trials import Claim
from runyard.server.sweeps.policy.rules import Rules
from runyard.server.sweeps.serving.creation import read_file
from runyard.server.sweeps.serving.drawing import BY_NUMBER, Drawing
from runyard.server.sweeps.serving.handed_out import HandedOut
from runyard.server.sweeps.serving.judging import Judge
from runyard.server.sweeps.serving.not_finite import NotFiniteWatch
from runyard.server.sweeps.serving.quiet_period import QuietPeriod
from runyard.server.sweeps.serving.suggestions import Demand, Suggestions
from runyard.vocabulary import OPEN_STATES

log = logging.getLogger(__name__)

# Claims in one transaction: more would keep everybody else's writing waiting.
AT_ONCE = 32
# Claims that come with an end, each in a change of its own, which counts the sweep's budget anew.
MOST_WITH_ENDS = 4
# How often a line looks up, so that a stop of the server does not wait for it.
_LOOK_UP = 1.0
_FORGET_EVERY = 60.0


@dataclass(frozen=True)
class Answer:
    """What a claim came to: a trial; or nothing, and whether the agent may go."""

    handed: Handed | None
    is_over: bool = False
    why: str = ""
    # Whether new trials can still be drawn, though none could be had now.
    has_more: bool = True


@dataclass(frozen=True)
class Plan:
    """What a sweep's file says, read once and kept until it changes."""

    id: str
    text: str
    sweep: Sweep
    rules: Rules

    @property
    def is_by_number(self) -> bool:
        """Whether new trials follow from their numbers, and wait for no result."""
        return self.sweep.method in BY_NUMBER or not self.rules.draws

    @property
    def claims_with_end(self) -> bool:
        """Whether an attempt's end may bring the claim for the next trial. Trials that somebody
        else draws are not there yet when the last one ends."""
        return self.is_by_number and self.rules.draws and not self.rules.promotes


@dataclass(eq=False)
class _Waiting:
    claim: Claim
    until: float
    answer: asyncio.Future[Answer]


class ClaimQueue:
    """The claims that wait for trials of one sweep."""

    def __init__(self, queues: ClaimQueues, key: int) -> None:
        self._queues = queues
        self._key = key
        self._line: list[_Waiting] = []
        self._woken = asyncio.Event()
        self._crowd = asyncio.Event()
        self._serving: asyncio.Task[None] | None = None
        # When hundreds ask at once, the first are answered while the last are still unread. Each
        # sweep has its own: one that waits for a fit keeps no other sweep's agents outside.
        self.door = asyncio.Semaphore(AT_ONCE)
        # Ends whose claim is under way beside the line.
        self.with_ends = 0

    async def claim(self, claim: Claim, wait: float) -> Answer:
        """Stand in line for at most `wait` seconds; the first time, one is always served."""
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        waiting = _Waiting(claim, time.monotonic() + wait, answer)
        self._line.append(waiting)
        self._crowd.set()
        self.wake()
        if self._serving is None:
            self._serving = asyncio.create_task(self._serve())
        try:
            return await answer
        finally:
            if waiting in self._line:
                self._line.remove(waiting)  # Whoever asked is gone.

    @property
    def is_busy(self) -> bool:
        return bool(self._line)

    def wake(self) -> None:
        """Something has changed: there may be work."""
        self._woken.set()

    async def _serve(self) -> None:
        try:
            while self._line:
                self._woken.clear()
                line = list(self._line)
                for start in range(0, len(line), AT_ONCE):
                    await self._serve_once(line[start : start + AT_ONCE])
                while self._line and not self._woken.is_set() and not self._expire():
                    await self._sleep()
        finally:
            self._serving = None

    async def _serve_once(self, line: list[_Waiting]) -> None:
        try:
            self._crowd.clear()
            served = await self._queues.serve(
                self._key, [claim.claim for claim in line], self._crowd
            )
        except Exception as error:
            for claim in line:
                self._answer(claim, error)
            return
        for claim, handed in zip(line, served.handed, strict=True):
            if handed is not None:
                self._answer(claim, Answer(handed))
            elif served.state not in OPEN_STATES:
                self._answer(claim, Answer(None, is_over=True, why=_why(served)))
            elif claim.until <= time.monotonic():
                self._answer(claim, Answer(None, why=_why(served), has_more=served.has_more))

    def _answer(self, claim: _Waiting, answer: Answer | Exception) -> None:
        if claim in self._line:
            self._line.remove(claim)
        if claim.answer.done():
            return
        if isinstance(answer, Answer):
            claim.answer.set_result(answer)
        else:
            claim.answer.set_exception(answer)

    def _expire(self) -> bool:
        """Let those go who have waited long enough. Says whether nobody is left."""
        now = time.monotonic()
        for claim in list(self._line):
            if claim.until <= now or self._queues.is_stopping():
                self._answer(claim, Answer(None, why="nothing to do at the moment"))
        return not self._line

    async def _sleep(self) -> None:
        soonest = min(claim.until for claim in self._line) - time.monotonic()
        try:
            await asyncio.wait_for(self._woken.wait(), max(0.0, min(soonest, _LOOK_UP)))
        except asyncio.TimeoutError:
            return


def _why(served: Round) -> str:
    if served.state == "paused":
        return "the sweep is paused"
    if served.state not in OPEN_STATES:
        return served.cause or f"the sweep is {served.state}"
    if not served.has_more:
        return "every trial is handed out; those at work may come back"
    return "the next trial is being chosen"


class ClaimQueues:
    """Every sweep's queue, and what is known of its file and its agents."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._queues: dict[int, ClaimQueue] = {}
        self._plans: dict[int, Plan] = {}
        self._agents: dict[int, Row] = {}
        self._suggestions: dict[int, Suggestions] = {}
        self._judges: dict[int, Judge] = {}
        self._not_finite: dict[int, NotFiniteWatch] = {}
        self._changes: dict[int, int] = {}
        # Of agents.
        self.quiet_periods: dict[int, QuietPeriod] = {}
        self.is_stopping: Callable[[], bool] = lambda: False

    async def begin_agent(self, sweep: int, new: NewAgent) -> Row:
        row = await self.store.write(agents.begin, sweep, new, time.time())
        self._agents[row["key"]] = row
        return row

    async def agent(self, key: int) -> Row:
        """An agent, with `sweep` and `entity`; which do not change while it lives."""
        known = self._agents.get(key)
        if known is None:
            known = await self.store.read(agents.by_key, key)
            if known is None:
                raise NoAgent(f"there is no agent {key}")
            self._agents[key] = known
        return known

    async def claim(self, agent: int, token: str | None = None, wait: float = 0.0) -> Answer:
        """The next trial for an agent. W&B's agents have no tokens, and no attempts of ours."""
        row = await self.agent(agent)
        claim = Claim(agent, row["user"], row["kind"], row["host"], row["pid"], token)
        return await self.queue(row["sweep"]).claim(claim, wait)

    def queue(self, sweep: int) -> ClaimQueue:
        return self._queues.setdefault(sweep, ClaimQueue(self, sweep))

    def plan_by_number(self, sweep: int) -> Plan | None:
        """The plan of a sweep whose next trial can be handed out without its queue, if it is so:
        nobody is before in the line, few others do so at this moment (the line serves many in one
        go), and no trial was paused to be compared."""
        plan = self._plans.get(sweep)
        if plan is None or not plan.claims_with_end:
            return None
        queue = self.queue(sweep)
        return None if queue.is_busy or queue.with_ends >= MOST_WITH_ENDS else plan

    def wake(self, *changed: int) -> None:
        """These sweeps have changed: whoever waits for their trials looks again."""
        for sweep in changed:
            self._changes[sweep] = self.changes(sweep) + 1
            if sweep in self._queues:
                self._queues[sweep].wake()
            if sweep in self._suggestions:
                self._suggestions[sweep].stir()

    def changes(self, sweep: int) -> int:
        """How often a sweep has changed since the server started."""
        return self._changes.get(sweep, 0)

    async def serve(self, sweep: int, line: list[Claim], crowd: asyncio.Event) -> Round:
        """One transaction for all of the line. `crowd` is set when others come to it."""
        counts = await self.store.read(results.demand, sweep)
        if counts is None:
            return Round([None] * len(line), "canceled", "the sweep is gone", False)
        row, waiting, at_work, ended = counts
        plan = await self.plan_of(row)
        file, rules = plan.sweep, plan.rules
        if rules.promotes:
            await self._promote(row, file, len(line), at_work)
        if plan.is_by_number:
            drawing = Drawing(file, row["seed"])
            return await self.store.write(claims.hand_out, sweep, line, drawing, time.time())
        is_open = row["state"] == "running" and sweeps.has_more(row, rules)
        # A line that trials wait for needs none; a new setting serves as many as it has seeds.
        needed = -(-(len(line) - waiting) // rules.seeds) if is_open else 0
        demand = Demand(needed, row["drawn"] // rules.seeds, at_work, ended // rules.seeds)
        suggestions = await self._suggestions_of(row, file)
        drawing = Drawing(file, row["seed"], await suggestions.take(demand, crowd))
        served = await self.store.write(claims.hand_out, sweep, line, drawing, time.time())
        suggestions.give_back(drawing.left)
        return served

    async def _promote(self, row: Row, file: Sweep, most: int, at_work: int) -> None:
        """Paused trials that are to go on come before new ones."""
        none_left = await self.judge_of(row["key"], file).promote(most)
        if none_left and not at_work:
            await self.store.write(settling.conclude, row["key"], time.time(), none_promoted=True)

    def judge_of(self, key: int, file: Sweep) -> Judge:
        known = self._judges.get(key)
        if known is None or known.sweep is not file:
            known = self._judges[key] = Judge(self.store, key, file)
        return known

    def _watch_of(self, key: int, file: Sweep) -> NotFiniteWatch:
        known = self._not_finite.get(key)
        if known is None or known.sweep is not file:
            known = self._not_finite[key] = NotFiniteWatch(self.store, file)
        return known

    async def hear(self, trial: Row, place: int | None, lines: Sequence[str]) -> bool:
        """A client has logged, or ended. Says whether the run is to end because of it.

        `place`: the number that the first new row has in its run.
        """
        if trial["state"] != "running":
            self.wake(trial["sweep"])
        file = (await self.plan(trial["sweep"])).sweep
        if not lines or not file.metrics:
            return False
        is_to_end = await self._watch_of(trial["sweep"], file).hear(trial, lines)
        if not is_to_end and Judge.is_needed(file):
            is_to_end = await self.judge_of(trial["sweep"], file).hear(trial, place, lines)
        if is_to_end:
            self.wake(trial["sweep"])  # Its agent may have to end it.
        return is_to_end

    async def _suggestions_of(self, row: Row, file: Sweep) -> Suggestions:
        key: int = row["key"]
        known = self._suggestions.get(key)
        if known is None or known.sweep is not file:
            handed_out = await HandedOut.read(self.store, key, file.space, row["seed"])
            config = json.loads(row["config"])
            known = Suggestions(self.store, key, file, config, row["seed"], handed_out)
            self._suggestions[key] = known
        return known

    async def close(self) -> None:
        """End every process that makes suggestions."""
        for suggestions in self._suggestions.values():
            await suggestions.close()

    async def plan(self, sweep: int) -> Plan:
        """What is known of a sweep that is there; a change of its file is noticed by its queue."""
        known = self._plans.get(sweep)
        if known is not None:
            return known
        return await self.plan_of(await self.store.read(sweeps.get, sweep))

    async def plan_of(self, row: Row) -> Plan:
        """What the file of a sweep says, as its row has it now."""
        known = self._plans.get(row["key"])
        if known is not None and known.text == row["text"]:
            return known
        # Beside the event loop: a long list of values takes its time. Not the text again: what came
        # as data, such as a list of 2,000 command lines, may be longer than a text may be.
        file = await asyncio.to_thread(read_file, json.loads(row["config"]))
        plan = Plan(row["id"], row["text"], file.sweep, sweeps.rules_of(row))
        self._plans[row["key"]] = plan
        return plan

    async def forget_ended(self) -> None:
        """For as long as the server runs: keep nothing in memory of sweeps that are over."""
        while True:
            await asyncio.sleep(_FORGET_EVERY)
            for sweep in {*self._plans, *self._judges, *self._not_finite, *self._suggestions}:
                try:
                    await self._forget_if_ended(sweep)
                except Exception:
                    log.exception("could not look whether sweep %d is over", sweep)

    async def _forget_if_ended(self, sweep: int) -> None:
        row = await self.store.read(sweeps.by_key, sweep)
        if row is not None and row["state"] in OPEN_STATES:
            return
        for memory in (self._plans, self._judges, self._not_finite):
            memory.pop(sweep, None)
        making = self._suggestions.pop(sweep, None)
        if making is not None:
            await making.close()

    async def watch_leases(self) -> None:
        """For as long as the server runs: settle what nobody answers for any more."""
        look_every = min(1.0, leases.LEASE_SECONDS / 4)
        last_look = time.time()
        while True:
            await asyncio.sleep(look_every)
            now = time.time()
            try:
                # A look that comes this late was not ours to time: nobody could be heard either.
                if not 0 <= now - last_look < look_every + leases.LEASE_SECONDS / 2:
                    await self.store.write(leases.extend_all, now)
                changed = set[int]()
                if await self.store.read(leases.are_silent, now):
                    changed = await self.store.write(leases.lose_silent, now)
            except Exception:
                log.exception("could not look for lost trials")
                continue
            finally:
                last_look = now
            if changed:
                log.info("trials of %d sweeps were lost with their agents", len(changed))
                self.wake(*changed)
