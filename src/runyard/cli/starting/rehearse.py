"""Try a program small before a launch: overfit one sample, one batch, then a few settings.

  runyard rehearse -- python train.py       the rungs that runyard.yaml names, then a few steps
  runyard rehearse sweep.yaml               the same, then four settings spread over the space
  runyard rehearse --rung 'one sample' -- python train.py    one rung alone
  runyard rehearse --rung settings --settings 8 sweep.yaml   the settings alone

A rung makes the program small by words that are added to its command, or the program asks for it
by itself (`train.rehearsal()`). It passes when the loss has fallen far enough:

  rehearse:
    one sample: {add: [--samples, 1], metric: train_loss, below: 0.01}
    one batch: {add: [--batches, 1], metric: train_loss}

Each rung says whether it passed; the first that fails ends the climb. Nothing is tracked or made.
"""

from __future__ import annotations

import argparse
import shlex

from runyard.actions.events import Event
from runyard.actions.sweeping.sweep_plan import looks_like_file
from runyard.actions.trying import rehearse as rungs
from runyard.actions.trying.tryouts import Tried
from runyard.cli.completers import complete_sweep_or_file
from runyard.cli.output import console, print_json, say, show
from runyard.cli.parser import add, add_program, duration, flag, positive, program_words
from runyard.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "runyard rehearse [options] (FILE | -- PROGRAM [ARGUMENTS ...])"
    add(parser, "--rung NAME", "this rung alone; may be repeated; settings are the last",
        action="append", default=[])  # fmt: skip
    add(parser, "--settings N", "so many settings of a sweep are tried (default 4)",
        type=positive, default=4)  # fmt: skip
    add(parser, "--set NAME=VALUE", "a parameter or a key of the sweep file, as `runyard sweep` "
        "takes it; may be repeated", action="append", default=[])  # fmt: skip
    add(parser, "--time TIME", "how long each setting may take (default 20s)",
        type=duration, default=20.0)  # fmt: skip
    flag(parser, "--json", "print the outcome as JSON")
    add_program(parser, "a sweep file, or a program and its arguments", "FILE | -- PROGRAM ...",
                completer=complete_sweep_or_file)  # fmt: skip


def run(args: argparse.Namespace) -> int:
    request = _request(args)

    def notify(event: Event) -> None:
        if isinstance(event, rungs.RungTried) and not args.json:
            _print_tried(event.tried)
        elif not (isinstance(event, rungs.NoRungsKnown) and args.json):
            show(event)

    rehearsal = rungs.rehearse(request, notify)
    if args.json:
        print_json([{"rung": step.rung, **vars(step.tried)} for step in rehearsal.steps])
    else:
        _tell_outcome(rehearsal, request)
    return 1 if rehearsal.failed else 0


def _request(args: argparse.Namespace) -> rungs.RehearseRequest:
    behind_dashes = args.program[:1] == ["--"]
    words = program_words(args)
    if not words:
        raise UsageError(
            "runyard rehearse: what?",
            mend="runyard rehearse sweep.yaml   or:  runyard rehearse -- python train.py",
        )
    if not behind_dashes and (len(words) > 1 or not looks_like_file(words[0])):
        raise UsageError(
            f"runyard rehearse: {words[0]!r} is no sweep file",
            mend=f"a program stands behind --: runyard rehearse -- {shlex.join(words)}",
        )
    command, sweep_file = (words, None) if behind_dashes else ((), words[0])
    return rungs.RehearseRequest(
        command, sweep_file, sets=args.set, rungs=args.rung, settings=args.settings,
        seconds=args.time,
    )  # fmt: skip


def _tell_outcome(rehearsal: rungs.Rehearsal, request: rungs.RehearseRequest) -> None:
    failed = rehearsal.failed
    outcome = f"{failed[0].name} failed" if failed else "all passed"
    console().print(f"\n{len(rehearsal.steps)} tried, {outcome}; nothing was made", style="bold")
    if not failed:
        command = shlex.join(request.command or ("python", "train.py"))
        say(f"next, what it needs:  runyard gauge -- {command}")


def _print_tried(tried: Tried) -> None:
    out = console()
    verdict, style = ("ok", "green") if tried.is_good else ("failed", "red")
    out.print(f"{verdict:<6}  {tried.name}  {tried.how}", style=style, soft_wrap=True)
    for line in tried.said.splitlines():
        out.print(f"        {line}", soft_wrap=True)
