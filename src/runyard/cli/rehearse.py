"""Try a program small before a launch: overfit one sample, one batch, then a few settings.

  runyard rehearse -- python train.py       the rungs that runyard.yaml names, then a few steps
  runyard rehearse sweep.yaml               the same, then four settings spread over the space
  runyard rehearse --rung 'one sample' -- python train.py    one rung alone
  runyard rehearse --rung settings sweep.yaml                the settings alone

A rung makes the program small by words that are added to its command, or the program asks for it
by itself (`train.rehearsal()`). It passes when the loss has fallen far enough:

  rehearse:
    one sample: {add: [--samples, 1], metric: train_loss, below: 0.01}
    one batch: {add: [--batches, 1], metric: train_loss}

Each rung says whether it passed; the first that fails ends the climb. Nothing is tracked or made.
"""

from __future__ import annotations

import argparse
import math
import shlex
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runyard.cli.completers import complete_sweep_or_file
from runyard.cli.output import console, number, print_json, say
from runyard.cli.parser import duration, positive
from runyard.cli.rehearsal import (
    LOOK_EVERY,
    SETTINGS,
    Tried,
    how_it_went,
    print_tried,
    settings_of,
    try_for_a_few_steps,
    try_setting,
    try_words,
)
from runyard.config.request import Rung
from runyard.errors import UsageError
from runyard.gauge.tryout import CannotStart, Tryout
from runyard.reading.problems import nearest

if TYPE_CHECKING:
    from runyard.cli.sweep_plan import Plan

# What the seed of all checks is: a model that cannot learn one sample learns nothing.
_USUAL = {"one sample": Rung(), "one batch": Rung()}
_HOOK = "rehearsal"

Words = Callable[[Tryout, tuple[str, ...]], list[str]]
"""The command, with words added, for a tryout."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "runyard rehearse [options] (FILE | -- PROGRAM [ARGUMENTS ...])"
    parser.add_argument("--rung", action="append", default=[], metavar="NAME",
                        help="this rung alone; may be repeated; settings are the last")  # fmt: skip
    parser.add_argument("--settings", type=positive, default=4, metavar="N",
                        help="so many settings of a sweep are tried (default 4)")  # fmt: skip
    parser.add_argument("--time", type=duration, default=20.0, metavar="TIME",
                        help="how long each setting may take (default 20s)")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    words = parser.add_argument("words", nargs=argparse.REMAINDER, metavar="FILE | -- PROGRAM ...",
                                help="a sweep file, or a program and its arguments")  # fmt: skip
    words.completer = complete_sweep_or_file  # type: ignore[attr-defined]
    parser.set_defaults(parser=parser)


def run(args: argparse.Namespace) -> int:
    from runyard.config.project_file import read_project

    words: list[str] = args.words
    behind_dashes = words[:1] == ["--"]
    words = words[1:] if behind_dashes else words
    if not words:
        raise UsageError(
            "runyard rehearse: what?",
            mend="runyard rehearse sweep.yaml   or:  runyard rehearse -- python train.py",
        )
    if words[0].startswith("-") and not behind_dashes:
        args.parser.refuse_unknown(words)
    request = read_project(Path.cwd())
    plan = None if behind_dashes else _read_sweep(words)
    rungs = dict(request.rehearse) or (_USUAL if _offers_hooks(words, plan) else {})
    chosen = _chosen(rungs, args.rung)
    if not rungs and not args.json:
        say(
            "no rungs are known: runyard.yaml has no rehearse:, and the program does not ask "
            "train.rehearsal(); settings alone are tried"
        )
    tried: list[dict[str, Any]] = []
    for name, rung in chosen.items():
        one = climb_rung(name, rung, _words_of(words, plan), plan.folder if plan else Path.cwd())
        tried.append({"rung": name, **vars(one)})
        if not args.json:
            print_tried(one)
        if not one.is_good:
            return _finish(args, tried, words)
    if not args.rung or SETTINGS in args.rung:
        for one in _try_settings(args, words, plan):
            tried.append({"rung": SETTINGS, **vars(one)})
            if not args.json:
                print_tried(one)
    return _finish(args, tried, words)


def _finish(args: argparse.Namespace, tried: list[dict[str, Any]], words: list[str]) -> int:
    failed = [one for one in tried if not one["is_good"]]
    if args.json:
        print_json(tried)
    else:
        told = f"{failed[0]['name']} failed" if failed else "all passed"
        console().print(f"\n{len(tried)} tried, {told}; nothing was made", style="bold")
        if not failed:
            command = (
                "-- python train.py" if args.words[:1] != ["--"] else f"-- {shlex.join(words)}"
            )
            say(f"next, what it needs:  runyard gauge {command}")
    return 1 if failed else 0


def _read_sweep(words: list[str]) -> Plan:
    from runyard.cli.parser import build_parser
    from runyard.cli.sweep_plan import looks_like_file, make_plan

    if len(words) > 1 or not looks_like_file(words[0]):
        raise UsageError(
            f"runyard rehearse: {words[0]!r} is no sweep file",
            mend=f"a program stands behind --: runyard rehearse -- {shlex.join(words)}",
        )
    parser, _ = build_parser("sweep")
    return make_plan(parser.parse_args(["sweep", words[0]]))


def _offers_hooks(words: list[str], plan: Plan | None) -> bool:
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


def _chosen(rungs: Mapping[str, Rung], names: list[str]) -> Mapping[str, Rung]:
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


def _words_of(words: list[str], plan: Plan | None) -> Words:
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


def _try_settings(args: argparse.Namespace, words: list[str], plan: Plan | None) -> Any:
    if plan is None:
        with Tryout("a few steps", rung=SETTINGS) as tryout:
            yield try_for_a_few_steps(tryout, words, Path.cwd(), args.time, [], {})
        return

    for name, values in settings_of(plan, args.settings):
        yield try_setting(plan, name, values, args.time)
