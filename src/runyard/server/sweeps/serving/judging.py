"""Early stopping: every report of a trial is judged as it comes in.

The rule keeps its own memory, which is made anew from what is stored when the server starts. A
trial that is to end is told so by its client's stream, and keeps all its rows.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from sqlite3 import Connection
from typing import Any

import orjson

from runyard.search.stopping.choose import make_stopper
from runyard.search.stopping.decision import Decision
from runyard.search.sweep import Asha, Sweep
from runyard.server.history.reading.dotted_names import look_up
from runyard.server.runs import runs
from runyard.server.store.sql import Row
from runyard.server.store.store import Store
from runyard.server.sweeps.ledger import measures, settling, sweeps, trials
from runyard.server.sweeps.ledger.measures import Reported, as_number
from runyard.server.sweeps.policy.rules import Aim
from runyard.vocabulary import ENDED_STATES

# More rows than that are read beside the event loop.
_MANY = 200
_ASKS = {Decision.STOP: "stopped", Decision.PAUSE: "paused"}


class Judge:
    """The rule of one sweep, and how far it knows each trial."""

    def __init__(self, store: Store, key: int, sweep: Sweep) -> None:
        self._store = store
        self._key = key
        self.sweep = sweep
        metric = sweep.metrics[0]
        self._aim = Aim(metric.name, metric.goal == "maximize", metric.target)
        rule = sweep.early_terminate
        self._stopper = None if rule is None else make_stopper(rule, self._aim.maximize)
        self._step = rule.step if isinstance(rule, Asha) else None
        # Of each trial: the row that should come next, and how many values there were.
        self._rows: dict[int, int] = {}
        self._counts: dict[int, int] = {}
        self._arriving: dict[int, int] = {}
        self._is_restored = asyncio.Event()
        self._restoring: asyncio.Task[None] | None = None
        # To go on as soon as their programs have ended.
        self._due: set[int] = set()

    @staticmethod
    def is_needed(sweep: Sweep) -> bool:
        has_target = any(metric.target is not None for metric in sweep.metrics)
        return bool(sweep.metrics) and (sweep.early_terminate is not None or has_target)

    async def hear(self, trial: Row, place: int | None, lines: Sequence[str]) -> bool:
        """Rows of a trial came in. Says whether it is to end."""
        number: int = trial["number"]
        if place is not None and not self._is_restored.is_set():
            self._arriving[number] = min(place, self._arriving.get(number, place))
        await self._restore()
        if place is None or place != self._rows.get(number, 0):
            reported = await self._read(trial)
            known = self._counts.get(number, 0)
            # What came before is judged again where nothing is new: others have moved since.
            fresh = reported.curve[known:] or reported.curve[-1:]
            pairs = [(index, value) for _, index, value in fresh]
            self._rows[number] = reported.rows
            self._counts[number] = len(reported.curve)
        else:
            read = self._read_lines
            pairs = (
                await asyncio.to_thread(read, number, lines)
                if len(lines) > _MANY
                else read(number, lines)
            )
            self._rows[number] = place + len(lines)
        return await self._judge(trial, pairs)

    async def _judge(self, trial: Row, pairs: Sequence[tuple[float, float]]) -> bool:
        decision = Decision.GO_ON
        for index, value in pairs:
            verdict = self._stopper.report(trial["number"], index, value) if self._stopper else None
            if verdict in _ASKS and decision is Decision.GO_ON:
                decision = verdict
        if len(self.sweep.metrics) == 1 and any(
            self._aim.is_reached_by(value) for _, value in pairs
        ):
            await self._store.write(sweeps.update, self._key, time.time(), has_target=1)
        if decision not in _ASKS or trial["state"] != "running" or trial["stop"] is not None:
            return False
        return await self._store.write(_ask_to_end, trial["run"], _ASKS[decision])

    async def promote(self, most: int) -> bool:
        """Let paused trials go on that have turned out well. Says whether none is left to."""
        if self._stopper is None:
            return True
        await self._restore()
        for _ in range(most):
            number = self._stopper.promotable()
            if number is None:
                break
            self._stopper.resumed(number)
            self._due.add(number)
        for number in list(self._due):
            # Its program may still be on its way out.
            state = await self._store.write(trials.promote, self._key, number)
            if state == "running":
                continue
            self._due.discard(number)
        return not self._due

    async def _restore(self) -> None:
        """What is stored, as if it were reported now; once."""
        if self._restoring is None:
            self._restoring = asyncio.create_task(self._restore_all())
        await self._is_restored.wait()

    async def _restore_all(self) -> None:
        try:
            reports = await self._store.read(
                measures.read_all, self._key, self._aim.name, self._step
            )
            for reported in reports:
                # Rows that are on their way to be judged are not yet known.
                rows = min(reported.rows, self._arriving.get(reported.trial, reported.rows))
                curve = [(index, value) for row, index, value in reported.curve if row < rows]
                if self._stopper is not None:
                    self._stopper.restore(reported.trial, curve, reported.state == "paused")
                    if reported.state in ENDED_STATES:
                        self._stopper.ended(reported.trial)
                self._rows[reported.trial] = rows
                self._counts[reported.trial] = len(curve)
        finally:
            self._is_restored.set()

    async def _read(self, trial: Row) -> Reported:
        return await self._store.read(
            measures.read_reported,
            trial["run"],
            trial["number"],
            trial["state"],
            self._aim.name,
            self._step,
        )

    def _read_lines(self, number: int, lines: Sequence[str]) -> list[tuple[float, float]]:
        last = self._aim.name.rpartition(".")[2]
        pairs = []
        for line in lines:
            if last not in line:
                continue
            row = _parse(line)
            value = as_number(look_up(row, self._aim.name.split(".")))
            if value is None:
                continue
            self._counts[number] = self._counts.get(number, 0) + 1
            step = as_number(look_up(row, self._step.split("."))) if self._step else None
            index = step if self._step else float(self._counts[number])
            if index is not None:
                pairs.append((index, value))
        return pairs


def _parse(line: str) -> Any:
    try:
        return orjson.loads(line)
    except ValueError:  # NaN among its values, or no JSON at all.
        try:
            return json.loads(line)
        except ValueError:
            return None


def _ask_to_end(db: Connection, run: int, why: str) -> bool:
    row = runs.by_key(db, run)
    return row is not None and settling.ask_to_end(db, row, why, time.time())
