"""Run one command with several seeds, each as a run of its own.

  runyard repeat --seeds 5 -- python train.py            --seed 0 to --seed 4 are added
  runyard repeat --seeds 3,7,11 -- python train.py rng={seed}
  runyard repeat --seeds 5 --on slurm --gpus 1 -- python train.py

`runyard show --best` shows mean ± standard deviation of --metric; at the end the same is shown of
all that the runs have in their summaries. Options are those of `runyard farm`.
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from runyard.actions.sweeping.task_lists import estimate_list, repeated, submit_list
from runyard.cli.connect import server
from runyard.cli.output import number, print_table, say, show
from runyard.cli.slurm_options import add_slurm_arguments, refuse_slurm_options
from runyard.cli.starting.farm import add_work_arguments, list_request, preview, start
from runyard.client.sweeps import Sweep
from runyard.errors import UsageError
from runyard.schedulers.choice import has_queue

_MOST_SEEDS = 10_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "runyard repeat [options] [--] PROGRAM [ARGUMENTS ...]"
    parser.add_argument("--seeds", type=seeds, default=seeds("5"), metavar="N|LIST",
                        help="how many, or which: 5, 1,2,3 or 10..14 (default 5)")  # fmt: skip
    add_work_arguments(parser)
    parser.add_argument("--dry-run", action="store_true", help="show the tasks; run nothing")
    add_slurm_arguments(parser)
    parser.add_argument("command_line", nargs=argparse.REMAINDER, metavar="-- PROGRAM ...",
                        help="the program and its arguments")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    refuse_slurm_options(args)
    from runyard.config.task_list import Line, make_tasks

    words = args.command_line[1:] if args.command_line[:1] == ["--"] else args.command_line
    if not words:
        raise UsageError(
            "there is no program to repeat", mend="runyard repeat --seeds 5 -- python train.py"
        )
    commands = map(shlex.join, repeated(words, args.seeds))
    tasks = make_tasks("repeat", [Line(place, text) for place, text in enumerate(commands, 1)])
    request = list_request(args, tasks.with_seeds(args.seeds), folder=Path.cwd())
    if has_queue(args.on):
        from runyard.cli.starting.submission_view import (
            cluster_options,
            show_submission,
            tell_outcome,
        )

        outcome = submit_list(request, "repeat", cluster_options(args), show_submission)
        return tell_outcome(outcome, as_json=args.json)
    if args.dry_run:
        preview(request.tasks, as_json=args.json)
        estimate_list(request, show)
        return 0
    report = None if args.json else _report
    return start(request, as_json=args.json, quiet=args.quiet, report=report)


def seeds(text: str) -> tuple[int, ...]:
    """For `type=`: a number of seeds, or the seeds themselves."""
    from runyard.config.braces import TooMany, expand

    try:
        if text.isdecimal():
            numbers = tuple(range(int(text)))
        else:
            numbers = tuple(map(int, expand(f"{{{text}}}")))
    except (ValueError, TooMany):
        numbers = ()
    if not numbers or len(numbers) > _MOST_SEEDS or len(set(numbers)) < len(numbers):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number of seeds, nor seeds: 1,2,3 or 1..5"
        )
    return numbers


def _report(sweep: Sweep) -> None:
    from runyard.actions.sweeping.seeds import spread_of

    measured = spread_of(server(quiet=True), sweep)
    if not measured:
        say("no run has a number in its summary: only time and exit code are known")
        return
    print_table(
        ("METRIC", "MEAN ± DEVIATION", "SEEDS"),
        (
            (name, number(mean) if off is None else f"{number(mean)} ± {number(off)}", str(count))
            for name, (mean, off, count) in sorted(measured.items())
        ),
    )
