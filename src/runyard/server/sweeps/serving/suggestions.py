"""Suggestions of one sweep, prepared ahead in a process of its own.

A claim takes what lies ready. Where there is nothing it waits for a moment, and then takes a point
of an even spread instead: no claim waits for a fit. Where one agent works alone, it gets the
suggestion that knows of everything, which is then the same for the same seed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from runyard.search.space import Point
from runyard.search.sweep import Sweep
from runyard.server.store import json_text
from runyard.server.store.store import Store
from runyard.server.sweeps.ledger import results, sweeps
from runyard.server.sweeps.ledger.results import IsEnough, View
from runyard.server.sweeps.policy import ahead
from runyard.server.sweeps.serving.handed_out import HandedOut
from runyard.server.sweeps.serving.search_worker import SearchWorker, WorkerDied

log = logging.getLogger(__name__)

LONGEST_WAIT = 0.03
_SHORT_LINE = 4
# Alone, an agent has nothing to lose by waiting for a fit, or for the process to start.
LONGEST_WAIT_ALONE = 20.0
IDLE_SECONDS = 120.0
# Asked for at a time: a long question would keep fresher ones waiting.
_AT_ONCE = 16
# Nothing is fresher than anything else.
_AT_ONCE_BLIND = 256
# Between two tries to start a process that dies.
_PAUSE_AFTER_DEATH = 2.0
# How often the model is asked whether the search is at its end: after so many more results, or
# this share of all. Of so many answers the highest counts.
JUDGED_AFTER, JUDGED_SHARE, JUDGEMENTS = 5, 0.1, 3
# Takes no notice of results: what is ready never grows old.
_BLIND_METHODS = ("qmc",)


@dataclass(frozen=True)
class _Ready:
    point: Point
    # How many results it knows of.
    knows: int

    @cached_property
    def text(self) -> str:
        """The point as the ledger has it, once it is there."""
        return json_text.dump(list(self.point))


@dataclass(frozen=True)
class Demand:
    """What a line of claims needs."""

    # New settings, of which the first has that number.
    count: int
    setting: int
    others_at_work: int
    # Results that the ledger has.
    results: int


class Suggestions:
    """What is ready for one sweep, and the process that makes more."""

    def __init__(
        self,
        store: Store,
        key: int,
        sweep: Sweep,
        config: Any,
        seed: int,
        handed_out: HandedOut,
    ) -> None:
        self._store = store
        self._key = key
        self.sweep = sweep
        self._config = config
        self._seed = seed
        self._worker = SearchWorker()
        # One question at a time: the process answers them in their order.
        self._turn = asyncio.Lock()
        self._working: asyncio.Task[None] | None = None
        self._warming: asyncio.Task[None] | None = None
        self._asking: asyncio.Task[None] | None = None
        self._judging: asyncio.Task[None] | None = None
        self._stirred = asyncio.Event()
        self._news = asyncio.Event()
        self._used_at = time.monotonic()
        self._is_alone = True
        self._has_failed = False
        self._ready: list[_Ready] = []
        self._lent: dict[Point, _Ready] = {}
        # Handed out, and not in the ledger yet.
        self._under_way: list[Point] = []
        # How far the process has been told of the ledger, and how many results that were.
        self._upto = self._ends = self._known = self._prior = 0
        self._handed_out = handed_out
        self._at_work = 0
        # Since when a question is open, and how long the last one took.
        self._asked_at: float | None = None
        self._took: float | None = None
        # Whether something was handed out since the last question was asked and before its answer.
        self._taken_meanwhile = False
        self._chances: list[float] = []
        self._judged = 0

    async def take(self, demand: Demand, crowd: asyncio.Event) -> list[Point]:
        """Points for new settings. `crowd` is set when others come to stand in line."""
        if demand.count <= 0:
            return []
        self._used_at = time.monotonic()
        self._at_work = demand.others_at_work
        self._is_alone = demand.count == 1 and demand.others_at_work == 0
        if not demand.results and not self._prior and not self._ready:
            # Nothing is known: an even spread is as good as anything, and there at once.
            self.warm_up()
        elif self._is_alone:
            await self._wait_for_fresh(demand, crowd)
        else:
            self.stir()
            await self._wait_for_some(demand)
        self._ready = self._distinct(self._ready)
        taken = self._usable(demand.results)[: demand.count]
        self._ready = [suggestion for suggestion in self._ready if suggestion not in taken]
        self._taken_meanwhile |= bool(taken) and self._asked_at is not None
        self._lent = {suggestion.point: suggestion for suggestion in taken}
        self._under_way = [suggestion.point for suggestion in taken]
        for number in range(len(taken), demand.count):
            others = (*self._under_way, *(suggestion.point for suggestion in self._ready))
            self._under_way.append(self._handed_out.spread(demand.setting + number, others))
        self.stir()
        return list(self._under_way)

    def _distinct(self, ready: Sequence[_Ready]) -> list[_Ready]:
        """Those that were not handed out before, each once."""
        fresh: dict[Point, _Ready] = {}
        for suggestion in ready:
            if self._handed_out.is_new(suggestion.point):
                fresh.setdefault(self.sweep.space.snap(suggestion.point), suggestion)
        return list(fresh.values())

    def warm_up(self) -> None:
        """Start the process before it is needed: that takes longer than a claim may wait."""
        if not self._worker.is_alive and self._warming is None:
            self._used_at = time.monotonic()
            self._warming = asyncio.create_task(self._warm())

    def give_back(self, points: Sequence[Point]) -> None:
        """Points that were taken and not used after all."""
        self._ready += [self._lent[point] for point in points if point in self._lent]
        left = set(points)
        self._handed_out.add(point for point in self._under_way if point not in left)
        self._under_way.clear()

    def stir(self) -> None:
        """There may be results that nothing ready knows of, or too little is ready."""
        if self._is_alone or self.is_idle:
            return
        self._stirred.set()
        if self._working is None:
            self._working = asyncio.create_task(self._work())

    @property
    def is_idle(self) -> bool:
        return time.monotonic() - self._used_at > IDLE_SECONDS

    async def close(self) -> None:
        for task in (self._working, self._warming, self._asking, self._judging):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        await self._worker.stop()

    def _usable(self, known: int) -> list[_Ready]:
        """What may be handed out where there are so many results, the best informed first."""
        if self.sweep.method in _BLIND_METHODS:
            return list(self._ready)
        return sorted(
            (
                suggestion
                for suggestion in self._ready
                if not ahead.is_stale(suggestion.knows, known + self._prior, self._at_work)
            ),
            key=lambda suggestion: -suggestion.knows,
        )

    async def _wait_for_some(self, demand: Demand) -> None:
        """A moment, where what is missing may come in it."""
        # A long line is a sign of others behind it, who would wait for each of its moments.
        end = time.monotonic() + LONGEST_WAIT * min(1.0, _SHORT_LINE / demand.count)
        wanted = min(demand.count, ahead.wanted(demand.others_at_work))
        while len(self._usable(demand.results)) < wanted and self._is_due(end):
            self._news.clear()
            try:
                await asyncio.wait_for(self._news.wait(), max(0.0, end - time.monotonic()))
            except asyncio.TimeoutError:
                return

    def _is_due(self, by: float) -> bool:
        """Whether an answer is likely to come by then, if it takes as long as the last one."""
        if self._took is None or self._has_failed:
            return False
        return (self._asked_at or time.monotonic()) + self._took <= by

    async def _wait_for_fresh(self, demand: Demand, crowd: asyncio.Event) -> None:
        """For one agent alone: nothing made before, but one that knows everything there is."""
        self._ready.clear()
        asking = self._asking = asyncio.create_task(self._ask(demand.setting))
        others = asyncio.ensure_future(crowd.wait())
        await asyncio.wait(
            {asking, others}, timeout=LONGEST_WAIT_ALONE, return_when=asyncio.FIRST_COMPLETED
        )
        # If others came, they do not wait for its answer, which is then ready for one of them.
        others.cancel()
        if self._judging is None or self._judging.done():
            self._judging = asyncio.create_task(self._judge_alone())

    async def _warm(self) -> None:
        try:
            async with self._turn:
                await self._catch_up()
        except (WorkerDied, OSError) as error:
            log.warning("the search of sweep %d did not start: %s", self._key, error)
            await self._forget()
        finally:
            self._warming = None

    async def _ask(self, setting: int) -> None:
        # A process that has died is started again, once.
        for _ in range(2):
            try:
                async with self._turn:
                    view = await self._catch_up()
                    if view is not None:
                        # Not `+= await`: what is ready may be handed out while we wait.
                        made = await self._suggest(view, 1, setting)
                        self._ready += made
                break
            except (WorkerDied, OSError) as error:
                log.warning("the search of sweep %d has died: %s", self._key, error)
                await self._forget()
        self._news.set()

    async def _work(self) -> None:
        """Make more for as long as more is wanted; end when nobody asks."""
        try:
            while not self.is_idle:
                self._stirred.clear()
                try:
                    while await self._fill():
                        pass
                except (WorkerDied, OSError) as error:
                    log.warning("the search of sweep %d is started again: %s", self._key, error)
                    await self._forget()
                    self._has_failed = True
                    self._news.set()
                    await asyncio.sleep(_PAUSE_AFTER_DEATH)
                    self._has_failed = False
                    continue
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._stirred.wait(), IDLE_SECONDS)
            await self._forget()
        finally:
            self._working = None

    async def _fill(self) -> bool:
        """One more question to the process. Says whether it was needed."""
        async with self._turn:
            is_blind = self.sweep.method in _BLIND_METHODS
            fresh = self._count_fresh()

            def is_enough(at_work: int, news: int) -> bool:
                return (is_blind or not news) and fresh >= ahead.wanted(at_work)

            view = await self._catch_up(is_enough)
            if view is None:
                return False
            self._at_work = view.at_work
            wanted = ahead.wanted(view.at_work)
            missing = wanted - self._count_fresh()
            if view.pending is None or missing <= 0:
                await self._judge()
                return False
            most = _AT_ONCE_BLIND if is_blind else _AT_ONCE
            made = await self._suggest(view, min(missing, most), view.setting)
            # The oldest make room for what knows more.
            self._ready = sorted(self._ready + made, key=lambda suggestion: -suggestion.knows)[
                :wanted
            ]
        self._news.set()
        return bool(made)

    async def _judge_alone(self) -> None:
        with contextlib.suppress(WorkerDied, OSError):
            async with self._turn:
                await self._judge()

    async def _judge(self) -> None:
        """Note how likely it is that the search finds something better still."""
        if self.sweep.method != "bayes" or self._known < self._judged + max(
            JUDGED_AFTER, JUDGED_SHARE * self._judged
        ):
            return
        self._judged = self._known
        chance = await self._worker.chance()
        if chance is None:
            return
        self._chances = [*self._chances, chance][-JUDGEMENTS:]
        if len(self._chances) == JUDGEMENTS:
            await self._store.write(
                sweeps.update, self._key, time.time(), chance=max(self._chances)
            )

    def _count_fresh(self) -> int:
        return len(self._fresh())

    def _fresh(self) -> list[_Ready]:
        """Those of the ready suggestions that know as much as the process was told."""
        if self.sweep.method in _BLIND_METHODS:
            return self._ready
        return [suggestion for suggestion in self._ready if suggestion.knows == self._known]

    async def _suggest(self, view: View, count: int, setting: int) -> list[_Ready]:
        # The view may be older than what was handed out last: asked as if that were not there, the
        # process would say the same again.
        pending = view.pending or []
        under_way = [json_text.dump(list(point)) for point in self._under_way]
        unseen = set(under_way).difference(pending)
        # What the answer will replace is not pending: the search would avoid the most promising
        # points for the sake of trials that never run. If claims come during questions, it may run.
        staying = self._ready if self._taken_meanwhile else self._fresh()
        self._taken_meanwhile = False
        ahead_of_ledger = [
            *(text for text in under_way if text in unseen),
            *(ready.text for ready in staying),
        ]
        known = self._known
        began = self._asked_at = time.monotonic()
        points = await self._worker.suggest(
            [*pending, *ahead_of_ledger], count, setting + len(ahead_of_ledger)
        )
        self._asked_at, self._took = None, time.monotonic() - began
        if self._taken_meanwhile:
            known -= 1  # Made without what was handed out meanwhile: to be made again.
        return [_Ready(point, known) for point in points]

    async def _catch_up(self, is_enough: IsEnough = lambda *_: False) -> View | None:
        """Tell the process of everything that has ended; start it, where there is none."""
        if not self._worker.is_alive:
            await self._forget()
            await self._worker.start(self._config, self._seed)
            await self._tell_prior()
        view = await self._store.read(
            results.view, self._key, self._upto, is_enough, ends=self._ends
        )
        if view is None:
            return None
        if view.is_anew:
            self._judged, self._chances = 0, []
            await self._worker.open(self._config, self._seed)
            await self._tell_prior()
        await self._worker.add(view.results)
        self._upto, self._ends = view.upto, view.ends
        self._known += len(view.results)
        if view.is_anew:
            # What was made before knows something that does not count any more.
            self._ready = [
                _Ready(ready.point, min(ready.knows, self._known - 1)) for ready in self._ready
            ]
        return view

    async def _tell_prior(self) -> None:
        before = await self._store.read(results.prior_results, self._key, self.sweep.space.encode)
        await self._worker.add(before)
        self._known = self._prior = len(before)

    async def _forget(self) -> None:
        await self._worker.stop()
        self._asked_at = self._took = None
        self._upto = self._ends = self._known = self._prior = self._judged = 0
        self._ready.clear()
