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

from runyard.actions.sweeping.task_lists import repeated
from runyard.cli.connect import server
from runyard.cli.output import print_table, say
from runyard.cli.parser import add, add_program, flag, program_words, typed
from runyard.cli.slurm_options import add_slurm_arguments, refuse_slurm_options
from runyard.cli.starting.farm import add_work_arguments, launch, list_request
from runyard.cli.watching.best_view import measure
from runyard.config.braces import read_seeds
from runyard.errors import UsageError
from runyard.shapes.sweeps import Sweep


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "runyard repeat [options] [--] PROGRAM [ARGUMENTS ...]"
    add(parser, "--seeds N|LIST", "how many, or which: 5, 1,2,3 or 10..14 (default 5)",
        type=typed(read_seeds), default=tuple(range(5)))  # fmt: skip
    add_work_arguments(parser)
    flag(parser, "--dry-run", "show the tasks; run nothing")
    add_slurm_arguments(parser)
    add_program(parser, "the program and its arguments")


def run(args: argparse.Namespace) -> int:
    refuse_slurm_options(args)
    from runyard.config.task_list import Line, make_tasks

    words = program_words(args)
    if not words:
        raise UsageError(
            "there is no program to repeat", mend="runyard repeat --seeds 5 -- python train.py"
        )
    commands = map(shlex.join, repeated(words, args.seeds))
    tasks = make_tasks("repeat", [Line(place, text) for place, text in enumerate(commands, 1)])
    return launch(args, list_request(args, tasks.with_seeds(args.seeds)), "repeat", _report)


def _report(sweep: Sweep) -> None:
    from runyard.actions.sweeping.seeds import spread_of

    measured = spread_of(server(quiet=True), sweep)
    if not measured:
        say("no run has a number in its summary: only time and exit code are known")
        return
    rows = ((name, measure(mean, off), str(n)) for name, (mean, off, n) in sorted(measured.items()))
    print_table(("METRIC", "MEAN ± DEVIATION", "SEEDS"), rows)
