"""Run a program as a job of the cluster, and come back at once.

  runyard submit -- python train.py --lr 0.1
  runyard submit --gpus 1 --time 2h --seeds 5 -- python train.py    a job a seed
  runyard submit                       the command, or the sweep, that runyard.yaml names; or the
                                       command in experiment_configurations.txt
  runyard submit --dry-run -- python train.py      exactly what would be sent; makes nothing

The program runs in a copy of the code as it is now, so that the project can be worked on while the
job waits. ${NAME} in the command is a variable of the node, such as ${scratch_dir}. On a terminal
what will be asked of Slurm is shown first; --yes answers. The job's exit code is the program's.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from runyard.cli.option_groups import add_result_arguments, project_options
from runyard.cli.parser import add, add_program, flag, positive, program_words, typed
from runyard.cli.slurm_options import add_slurm_arguments
from runyard.config.braces import read_seeds
from runyard.errors import UsageError
from runyard.schedulers.choice import cluster_kind, has_queue

if TYPE_CHECKING:
    from runyard.actions.events import Notify
    from runyard.actions.submitting.submission import ClusterOptions, Outcome


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "runyard submit [options] [--] [PROGRAM ARGUMENTS ...]"
    add(parser, "--seeds N|LIST", "a job a seed: 5, 1,2,3 or 10..14; --seed N is added, or stands "
        "where the command says {seed}", type=typed(read_seeds))  # fmt: skip
    add(parser, "-j --slots N", "so many programs at a time in a job (default 1)",
        type=positive, default=1)  # fmt: skip
    add_result_arguments(parser)
    flag(parser, "--no-check", "submit it even if the program is not here, or does not know an "
         "option")  # fmt: skip
    flag(parser, "--dry-run", "show exactly what would be sent; make nothing")
    flag(parser, "--json", "print the outcome as JSON")
    add_slurm_arguments(parser, default=cluster_kind())
    add_program(parser, "the program (default: as runyard.yaml says)")


def run(args: argparse.Namespace) -> int:
    words = program_words(args)
    if not has_queue(args.on):
        raise UsageError(
            "runyard submit is for the cluster",
            mend=f"here:  runyard run -- {' '.join(words) or 'python train.py'}",
        )
    return submit_command(args, words)


def submit_command(args: argparse.Namespace, words: Sequence[str]) -> int:
    """Without words, what runyard.yaml names. Also for `runyard run --on slurm`, which has fewer
    options."""
    from runyard.actions.submit import SubmitRequest, submit, submit_project
    from runyard.cli.starting.submission_view import send

    names = ("name", "seeds", "slots", "retries", "metric", "goal")
    settings = {name: value for name, value in vars(args).items() if name in names}

    def submit_with(cluster: ClusterOptions, notify: Notify) -> Outcome:
        request = SubmitRequest(
            words, Path.cwd(), project_options(args), checks_program=not args.no_check,
            cluster=cluster, **settings,
        )  # fmt: skip
        return submit(request, notify) if words else submit_project(request, notify)

    return send(args, submit_with)
