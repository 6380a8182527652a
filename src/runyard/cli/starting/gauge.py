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
from runyard.actions.trying.gauge import (
    Gauged,
    GaugeRequest,
    Looking,
    conclude_from,
    keep_figures,
    measure_here,
    write_request,
)
from runyard.cli.completers import complete_file
from runyard.cli.letters import spelled
from runyard.cli.output import print_json, say, show
from runyard.cli.parser import duration, positive
from runyard.cli.project_options import project_options
from runyard.cli.slurm_options import add_slurm_arguments, refuse_slurm_options
from runyard.cli.starting.slots import add_slot_arguments, read_slots
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
    parser.add_argument("--for", type=duration, dest="span", metavar="TIME",
                        help="look for at most so long (default: gauge: time in runyard.yaml, "
                        "5m)")  # fmt: skip
    parser.add_argument("--whole", action="store_true", help="let it run to its end")
    parser.add_argument("--steps", type=positive, metavar="N",
                        help="steps of a whole run, where the program does not tell")  # fmt: skip
    parser.add_argument("--pack", type=positive, nargs="?", const=_MOST_TOGETHER, metavar="MOST",
                        help="run 1, 2, 4 and so on at a time, up to where more stops paying; "
                        "{seed} in the command is the copy's number")  # fmt: skip
    tasks = parser.add_argument("--tasks", metavar="FILE",
                                help="measure the lines of a task file together, as many as -j or "
                                "--per-gpu says (default: all)")  # fmt: skip
    tasks.completer = complete_file  # type: ignore[attr-defined]
    add_slot_arguments(parser, "programs")
    parser.add_argument("--kind", metavar="NAME", help="kind of experiment under which it is kept "
                        "(default: the program's name)")  # fmt: skip
    parser.add_argument(*spelled("--project"), help="project (default: runyard.yaml's, or this "
                        "folder's name)")  # fmt: skip
    parser.add_argument("--write", action="store_true", help="write it into runyard.yaml")
    parser.add_argument("--no-keep", action="store_true", help="keep no figures on the server")
    parser.add_argument("--list", action="store_true", help="show what is known, and run nothing")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    parser.add_argument("--dry-run", action="store_true",
                        help="with --on slurm: show what would be asked")  # fmt: skip
    add_slurm_arguments(parser)
    # What the job on the node is told: where to leave what it measured, what starts programs there.
    parser.add_argument("--raw", help=argparse.SUPPRESS)
    parser.add_argument("--started-by", help=argparse.SUPPRESS)
    parser.add_argument("command_line", nargs=argparse.REMAINDER, metavar="-- PROGRAM ...",
                        help="the program and its arguments")  # fmt: skip
    parser.set_defaults(parser=parser)


def run(args: argparse.Namespace) -> int:
    refuse_slurm_options(args)
    behind_dashes = args.command_line[:1] == ["--"]
    words = args.command_line[1:] if behind_dashes else args.command_line
    if words and words[0].startswith("-") and not behind_dashes:
        args.parser.refuse_unknown(words)
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
            raw = measure_here(wanted, project, _show)
        except KeyboardInterrupt:
            say("Ctrl-C: nothing was measured yet")
            raise
        if args.raw:
            return _leave(raw, Path(args.raw))
    return _finish(args, conclude_from(raw, wanted, project), project, words)


def _request(args: argparse.Namespace, words: list[str]) -> GaugeRequest:
    return GaugeRequest(
        command=words,
        tasks=args.tasks,
        options=project_options(args),
        slots=read_slots(args),
        seconds=args.span,
        whole=args.whole,
        steps=args.steps,
        pack=args.pack,
        kind=args.kind,
        keeps=not args.no_keep,
        launcher=shlex.split(args.started_by) if args.started_by else (),
    )


def _show(event: Event) -> None:
    if not isinstance(event, Looking):
        show(event)
    elif sys.stderr.isatty():
        text = "" if event.text is None else f"runyard: {printable(event.text)}"
        print(f"\r\x1b[K{text}", end="", file=unfiltered(sys.stderr), flush=True)


def _measure_in_job(args: argparse.Namespace, wanted: GaugeRequest) -> Raw | None:
    from runyard.actions.trying.gauge_job import JobPreview, measure_in_job

    raw = measure_in_job(wanted, show, dry_run=args.dry_run)
    if not isinstance(raw, JobPreview):
        return raw
    print(shlex.join(raw.allocation))
    print(shlex.join(raw.command))
    say("nothing was made or asked for")
    return None


def _leave(raw: Raw, path: Path) -> int:
    import json

    from runyard.gauge.conclusions import raw_to_json
    from runyard.home import write_whole

    write_whole(path, json.dumps(raw_to_json(raw)) + "\n")
    return 0


def _finish(args: argparse.Namespace, gauged: Gauged, project: Request, words: list[str]) -> int:
    """Say it, keep it, write it."""
    from runyard.cli.starting.gauge_view import print_conclusion

    conclusion, kind = gauged.conclusion, gauged.kind
    if gauged.raw.seen.is_cut_short:
        return _finish_early(args, gauged)
    if args.json:
        print_json({"kind": kind, "project": gauged.project, **conclusion.to_json()})
    else:
        print_conclusion(conclusion, gauged.raw, kind)
    if not args.no_keep:
        keep_figures(gauged, show)
    if args.write:
        say(f"written into {write_request(gauged, project)}")
    if not args.json:
        say(f"next, run it:  {_next(args, conclusion, words)}")
    return 0 if conclusion.fits in (None, True) else 1


def _finish_early(args: argparse.Namespace, gauged: Gauged) -> int:
    """Ctrl-C: what is known so far is said; nothing is kept or written."""
    from runyard.cli.starting.gauge_view import print_conclusion

    conclusion, kind = gauged.conclusion, gauged.kind
    say("Ctrl-C: the program was ended; this was measured so far, and is not kept")
    if args.json:
        cut = {"kind": kind, "project": gauged.project, "cut_short": True}
        print_json({**cut, **conclusion.to_json()})
    elif conclusion.measured.memory_peak or conclusion.measured.step:
        print_conclusion(conclusion, gauged.raw, kind)
    else:
        print("nothing yet")
    return INTERRUPTED


def _next(args: argparse.Namespace, conclusion: Conclusion, words: Sequence[str]) -> str:
    from runyard.cli.starting.gauge_view import ask_text

    options = "" if args.write else f" {ask_text(conclusion.ask)}"
    if args.tasks is not None:
        return f"runyard farm {shlex.quote(args.tasks)} --on slurm{options}"
    return f"runyard submit{options} -- {shlex.join(words)}"
