"""Run one command with several seeds, each as a run of its own.

  runyard repeat --seeds 5 -- python train.py            --seed 0 to --seed 4 are added
  runyard repeat --seeds 3,7,11 -- python train.py rng={seed}
  runyard repeat --seeds 5 --on slurm --gpus 1 -- python train.py

`runyard best` shows mean ± standard deviation of --metric; at the end the same is shown of all that
the runs have in their summaries. Options are those of `runyard farm`.
"""

from __future__ import annotations

import argparse
import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from runyard.cli.connect import server
from runyard.cli.farm import (
    add_work_arguments,
    estimate_list_here,
    preview,
    start,
    submit_list,
)
from runyard.cli.output import number, print_table, say
from runyard.cli.slurm_options import add_slurm_arguments, refuse_slurm_options
from runyard.client.sweeps import Sweep
from runyard.errors import UsageError
from runyard.schedulers.choice import has_queue

_PLACE = "{seed}"
_MOST_SEEDS = 10_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
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
    lines = [shlex.join(with_seed(words, seed)) for seed in args.seeds]
    found = make_tasks("repeat", [Line(place, text) for place, text in enumerate(lines, start=1)])
    found = found.with_seeds(args.seeds)
    if has_queue(args.on):
        return submit_list(args, found, kind="repeat", folder=Path.cwd())
    if args.dry_run:
        preview(found, as_json=args.json)
        estimate_list_here(args, found)
        return 0
    return start(args, found, report=None if args.json else _report)


def seeds(text: str) -> tuple[int, ...]:
    """For `type=`: a number of seeds, or the seeds themselves."""
    from runyard.config.braces import TooMany, expand

    try:
        if text.isdecimal():
            found = tuple(range(int(text)))
        else:
            found = tuple(map(int, expand(f"{{{text}}}")))
    except (ValueError, TooMany):
        found = ()
    if not found or len(found) > _MOST_SEEDS or len(set(found)) < len(found):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number of seeds, nor seeds: 1,2,3 or 1..5"
        )
    return found


def with_seed(words: Sequence[str], seed: int) -> list[str]:
    """The command for a seed: where it says {seed}, or at its end."""
    if any(_PLACE in word for word in words):
        return [word.replace(_PLACE, str(seed)) for word in words]
    return [*words, "--seed", str(seed)]


def spread(summaries: Sequence[Mapping[str, Any]]) -> dict[str, tuple[float, float | None, int]]:
    """Mean, standard deviation and count of every number that the summaries hold."""
    found: dict[str, list[float]] = {}
    for summary in summaries:
        for name, value in summary.items():
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if is_number and math.isfinite(value) and not name.startswith(("_", "progress/")):
                found.setdefault(name, []).append(float(value))
    return {name: (*_mean_and_deviation(values), len(values)) for name, values in found.items()}


def _mean_and_deviation(values: Sequence[float]) -> tuple[float, float | None]:
    mean = sum(values) / len(values)
    if len(values) < 2:
        return mean, None
    return mean, math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))


def _report(sweep: Sweep) -> None:
    api = server(quiet=True)
    trials = api.sweeps.trials(sweep["key"], state="finished")
    measured = spread([api.run(trial["id"])["summary"] for trial in trials])
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
