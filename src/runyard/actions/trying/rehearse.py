"""Try a program small before a launch: rung by rung, then a few settings. Nothing is tracked."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runyard.actions.events import Event, Notice, Notify
from runyard.actions.sweeping.sweep_plan import Plan, SweepSource, make_plan
from runyard.actions.trying.program_checks import check_plan
from runyard.actions.trying.tryouts import (
    LOOK_EVERY,
    SETTINGS,
    Tried,
    how_it_went,
    settings_of,
    try_for_a_few_steps,
    try_settings,
    try_words,
)
from runyard.config.overrides import Overrides
from runyard.config.request import Rung
from runyard.errors import UsageError
from runyard.gauge.tryout import CannotStart, Tryout
from runyard.reading.problems import nearest
from runyard.reading.units import number

# What the seed of all checks is: a model that cannot learn one sample learns nothing.
_USUAL = {"one sample": Rung(), "one batch": Rung()}
_HOOK = "rehearsal"

Words = Callable[[Tryout, tuple[str, ...]], list[str]]
"""The command, with words added, for a tryout."""


@dataclass(frozen=True)
class RehearseRequest:
    """A command or a sweep file, one of the two."""

    command: Sequence[str] = ()
    sweep_file: str | None = None
    sets: Sequence[str] = ()
    """NAME=VALUE that replace parameters or keys of the sweep file."""
    rungs: Sequence[str] = ()
    """These alone; all, and the settings behind them, where none is named."""
    settings: int = 4
    """So many settings of a sweep are tried."""
    seconds: float = 20.0
    """How long each setting may take."""


@dataclass(frozen=True)
class RungTried(Event):
    """One rung, or one of the settings behind the rungs, has been tried."""

    rung: str
    tried: Tried


@dataclass(frozen=True)
class NoRungsKnown(Notice):
    """Settings alone are tried."""

    text: str = (
        "no rungs are known: runyard.yaml has no rehearse:, and the program does not ask "
        "train.rehearsal(); settings alone are tried"
    )


@dataclass(frozen=True)
class Rehearsal:
    """What was tried, in its order; the first rung that fails is the last."""

    steps: Sequence[RungTried]

    @property
    def failed(self) -> list[Tried]:
        return [step.tried for step in self.steps if not step.tried.is_good]


def rehearse(request: RehearseRequest, notify: Notify) -> Rehearsal:
    """Climb the rungs of runyard.yaml, or those that the program asks for, then try settings."""
    from runyard.config.project_file import read_project

    project = read_project(Path.cwd())
    plan = None
    if request.sweep_file is not None:
        overrides = Overrides(sets=tuple(request.sets))
        plan = make_plan(SweepSource(request.sweep_file, overrides), notify)
        check_plan(plan, notify, refuses=False)
    rungs = dict(project.rehearse) or (_USUAL if _offers_hooks(request.command, plan) else {})
    chosen = _chosen(rungs, request.rungs)
    if not rungs:
        notify(NoRungsKnown())
    steps: list[RungTried] = []
    for step in _climb(request, chosen, plan):
        steps.append(step)
        notify(step)
    return Rehearsal(steps)


def _climb(
    request: RehearseRequest, rungs: Mapping[str, Rung], plan: Plan | None
) -> Iterator[RungTried]:
    folder = plan.folder if plan is not None else Path.cwd()
    for name, rung in rungs.items():
        tried = climb_rung(name, rung, _words_of(request.command, plan), folder)
        yield RungTried(name, tried)
        if not tried.is_good:
            return
    if request.rungs and SETTINGS not in request.rungs:
        return
    if plan is None:
        with Tryout("a few steps", rung=SETTINGS) as tryout:
            words = list(request.command)
            tried = try_for_a_few_steps(tryout, words, folder, request.seconds, [], {})
        yield RungTried(SETTINGS, tried)
        return
    for tried in try_settings(plan, request.settings, request.seconds):
        yield RungTried(SETTINGS, tried)


def _offers_hooks(words: Sequence[str], plan: Plan | None) -> bool:
    """Whether the program asks for its rung: it says `rehearsal` somewhere in its text."""
    from runyard.config.program_source import read_source

    folder = Path.cwd() if plan is None else plan.folder
    named = (
        words if plan is None else [plan.sweep.program or "", *map(str, plan.sweep.command or ())]
    )
    for word in named:
        if word.endswith(".py"):
            try:
                source = read_source((folder / word).read_text(encoding="utf-8"))
            except (OSError, UnicodeError):
                continue
            if source is not None and _HOOK in source.words:
                return True
    return False


def _chosen(rungs: Mapping[str, Rung], names: Sequence[str]) -> Mapping[str, Rung]:
    if not names:
        return rungs
    for name in names:
        if name not in rungs and name != SETTINGS:
            known = [*rungs, SETTINGS]
            guess = nearest(name, known)
            raise UsageError(
                f"there is no rung {name!r}",
                mend=f"did you mean {guess}?" if guess else f"there are: {', '.join(known)}",
            )
    return {name: rungs[name] for name in names if name != SETTINGS}


def _words_of(words: Sequence[str], plan: Plan | None) -> Words:
    if plan is None:
        return lambda _tryout, more: [*words, *more]
    # The middle of the space: the least odd of its settings.
    values = list(settings_of(plan, 3))[-1][1]
    return lambda tryout, more: try_words(plan, values, tryout, more)


def climb_rung(name: str, rung: Rung, words: Words, folder: Path) -> Tried:
    """Run it until it has passed, has ended, or its time is over."""
    begun = time.monotonic()
    judge = _Judge(rung)
    with Tryout(name, rung=name) as tryout:
        try:
            tryout.start(words(tryout, rung.add), folder)
        except CannotStart as error:
            return Tried(name, {}, False, str(error), 0.0)
        code = None
        while code is None and time.monotonic() < begun + rung.time:
            code = tryout.wait(LOOK_EVERY)
            tryout.steps.look()
            if judge.see(tryout.steps.rows):
                break
        tryout.end()
        lasted = time.monotonic() - begun
        if judge.has_passed and code in (0, None):
            return Tried(name, {}, True, judge.words(), lasted)
        how = judge.words()
        if code not in (0, None):
            how = how_it_went(code, len(tryout.steps.rows), lasted)
        return Tried(name, {}, False, how, lasted, tryout.said())


class _Judge:
    """Looks at what a rung logs, row by row."""

    def __init__(self, rung: Rung) -> None:
        self._rung = rung
        self._metric = rung.metric
        self._seen = 0
        self._first: float | None = None
        self._last: float | None = None
        self.has_passed = self._is_odd = False

    def see(self, rows: list[dict[str, Any]]) -> bool:
        """Whether it is decided."""
        for row in rows[self._seen :]:
            self._seen += 1
            if self._metric is None:
                self._metric = _loss_in(row)
            value = row.get(self._metric) if self._metric is not None else None
            if isinstance(value, bool) or not isinstance(value, int | float):
                continue
            self._first = float(value) if self._first is None else self._first
            self._last = float(value)
            self._is_odd = not math.isfinite(value)
            self.has_passed = not self._is_odd and self._passes(float(value))
            if self.has_passed or self._is_odd:
                return True
        return False

    def _passes(self, value: float) -> bool:
        rung = self._rung
        if rung.below is not None or rung.above is not None:
            is_low = rung.below is None or value < rung.below
            return is_low and (rung.above is None or value > rung.above)
        return self._first is not None and value <= rung.falls_to * self._first

    def words(self) -> str:
        rung = self._rung
        if self._last is None:
            return f"{self._metric or 'no loss'} was never logged"
        if self._is_odd:
            return f"{self._metric} is {self._last}"
        first = number(self._first)
        way = f"{self._metric} went from {first} to {number(self._last)}"
        if self.has_passed:
            return way
        wanted = [
            f"{word} {bound:g}"
            for word, bound in (("below", rung.below), ("above", rung.above))
            if bound is not None
        ]
        return f"{way}, and is to be {' and '.join(wanted) or f'{rung.falls_to:g} of its first'}"


def _loss_in(row: Mapping[str, Any]) -> str | None:
    names = [name for name in row if "loss" in name.lower() and not name.startswith("_")]
    return next((name for name in names if "train" in name.lower()), names[0] if names else None)
