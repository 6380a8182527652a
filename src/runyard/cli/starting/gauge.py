"""Measure what a program needs, and say what to ask for and how many share a GPU.

  runyard gauge -- python train.py --lr 0.1      run it here for a few minutes and look
  runyard gauge --write -- python train.py       and put the request into runyard.yaml
  runyard gauge --pack -- python train.py --seed {seed}   how many at a time get the most done
  runyard gauge --tasks tasks.txt -j 4           a whole task file, as it would run
  runyard gauge --on slurm --gpus 1 -- python train.py    in a short job, on the real hardware
  runyard gauge --list                           what is known so far, by kind of experiment

It ends when memory has levelled out and the pace is known, and ends the program then. Nothing is
tracked: wandb is offline, in a folder that is thrown away. The margins are settings of runyard.yaml
(gauge:). What was measured is kept for each kind of experiment, for the next estimate.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from runyard.actions.events import Event
from runyard.actions.trying import gauge as gauging
from runyard.cli.completers import complete_file
from runyard.cli.option_groups import add_slot_arguments, project_options, read_slots
from runyard.cli.output import print_json, say, show
from runyard.cli.parser import add, add_program, duration, flag, positive, program_words
from runyard.cli.slurm_options import add_slurm_arguments, refuse_slurm_options
from runyard.cli.streams import unfiltered
from runyard.errors import UsageError
from runyard.printable import printable
from runyard.schedulers.choice import has_queue

if TYPE_CHECKING:
    from runyard.config.request import Request
    from runyard.gauge.conclusions import Conclusion, Raw

_MOST_TOGETHER = 32
INTERRUPTED = 130


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "runyard gauge [options] [--] PROGRAM [ARGUMENTS ...]"
    add(parser, "--for TIME", "look for at most so long (default: gauge: time in runyard.yaml, 5m)",
        type=duration, dest="span")  # fmt: skip
    flag(parser, "--whole", "let it run to its end")
    add(parser, "--steps N", "steps of a whole run, where the program does not tell", type=positive)
    add(parser, "--pack MOST", "run 1, 2, 4 and so on at a time, up to where more stops paying; "
        "{seed} in the command is the copy's number",
        type=positive, nargs="?", const=_MOST_TOGETHER)  # fmt: skip
    add(parser, "--tasks FILE", "measure the lines of a task file together, as many as -j or "
        "--per-gpu says (default: all)", completer=complete_file)  # fmt: skip
    add_slot_arguments(parser, "programs")
    add(parser, "--kind NAME", "kind of experiment under which it is kept (default: the program's "
        "name)")  # fmt: skip
    add(parser, "-P --project", "project (default: runyard.yaml's, or this folder's name)")
    flag(parser, "--write", "write it into runyard.yaml")
    flag(parser, "--no-keep", "keep no figures on the server")
    flag(parser, "--list", "show what is known, and run nothing")
    flag(parser, "--json", "print the outcome as JSON")
    flag(parser, "--dry-run", "with --on slurm: show what would be asked")
    add_slurm_arguments(parser)
    # What the job on the node is told: where to leave what it measured, what starts programs there.
    add(parser, "--raw", argparse.SUPPRESS)
    add(parser, "--started-by", argparse.SUPPRESS)
    add_program(parser, "the program and its arguments")


def run(args: argparse.Namespace) -> int:
    refuse_slurm_options(args)
    words = program_words(args)
    from runyard.config.project_file import read_project

    wanted = _request(args, words)
    project = read_project(Path.cwd(), wanted.options.flags)
    if args.list:
        from runyard.cli.starting.gauge_view import list_known

        return list_known(wanted.project, as_json=args.json)
    if (not words) == (args.tasks is None):
        raise UsageError(
            "runyard gauge: which program?",
            mend="runyard gauge -- python train.py   or:  runyard gauge --tasks tasks.txt",
        )
    if has_queue(args.on):
        raw = _measure_in_job(args, wanted)
        if raw is None:
            return 0
    else:
        try:
            raw = gauging.measure_here(wanted, project, _show)
        except KeyboardInterrupt:
            say("Ctrl-C: nothing was measured yet")
            raise
        if args.raw:
            gauging.leave_raw(raw, Path(args.raw))
            return 0
    return _finish(args, gauging.conclude_from(raw, wanted, project), project, words)


def _request(args: argparse.Namespace, words: list[str]) -> gauging.GaugeRequest:
    launcher = shlex.split(args.started_by) if args.started_by else ()
    return gauging.GaugeRequest(
        command=words, tasks=args.tasks, options=project_options(args), slots=read_slots(args),
        seconds=args.span, whole=args.whole, steps=args.steps, pack=args.pack, kind=args.kind,
        keeps=not args.no_keep, launcher=launcher,
    )  # fmt: skip


def _show(event: Event) -> None:
    if not isinstance(event, gauging.Looking):
        show(event)
    elif sys.stderr.isatty():
        text = "" if event.text is None else f"runyard: {printable(event.text)}"
        print(f"\r\x1b[K{text}", end="", file=unfiltered(sys.stderr), flush=True)


def _measure_in_job(args: argparse.Namespace, wanted: gauging.GaugeRequest) -> Raw | None:
    from runyard.actions.trying.gauge_job import JobPreview, measure_in_job

    raw = measure_in_job(wanted, show, dry_run=args.dry_run)
    if not isinstance(raw, JobPreview):
        return raw
    print(shlex.join(raw.allocation))
    print(shlex.join(raw.command))
    say("nothing was made or asked for")
    return None


def _finish(
    args: argparse.Namespace, gauged: gauging.Gauged, project: Request, words: list[str]
) -> int:
    """Say it, keep it, write it; after a Ctrl-C, only say what is known so far."""
    from runyard.cli.starting.gauge_view import print_conclusion

    conclusion, kind = gauged.conclusion, gauged.kind
    measured, is_cut_short = conclusion.measured, gauged.raw.seen.is_cut_short
    if is_cut_short:
        say("Ctrl-C: the program was ended; this was measured so far, and is not kept")
    if args.json:
        cut = {"cut_short": True} if is_cut_short else {}
        print_json({"kind": kind, "project": gauged.project, **cut, **conclusion.to_json()})
    elif is_cut_short and not (measured.memory_peak or measured.step):
        print("nothing yet")
    else:
        print_conclusion(conclusion, gauged.raw, kind)
    if is_cut_short:
        return INTERRUPTED
    if not args.no_keep:
        gauging.keep_figures(gauged, show)
    if args.write:
        say(f"written into {gauging.write_request(gauged, project)}")
    if not args.json:
        say(f"next, run it:  {_next(args, conclusion, words)}")
    return 0 if conclusion.fits in (None, True) else 1


def _next(args: argparse.Namespace, conclusion: Conclusion, words: Sequence[str]) -> str:
    options = "" if args.write else f" {conclusion.ask.options()}"
    if args.tasks is not None:
        return f"runyard farm {shlex.quote(args.tasks)} --on slurm{options}"
    return f"runyard submit{options} -- {shlex.join(words)}"
