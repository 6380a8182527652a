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

from runyard.cli.letters import spelled
from runyard.cli.parser import count, positive
from runyard.cli.slurm_options import add_slurm_arguments
from runyard.cli.starting.repeat import seeds
from runyard.errors import UsageError
from runyard.schedulers.choice import cluster_kind, has_queue


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "runyard submit [options] [--] [PROGRAM ARGUMENTS ...]"
    parser.add_argument("--seeds", type=seeds, metavar="N|LIST",
                        help="a job a seed: 5, 1,2,3 or 10..14; --seed N is added, or stands where "
                        "the command says {seed}")  # fmt: skip
    parser.add_argument(*spelled("--slots"), type=positive, default=1, metavar="N",
                        help="so many programs at a time in a job (default 1)")  # fmt: skip
    parser.add_argument("--retries", type=count, metavar="N",
                        help="run one that fails up to N times more")  # fmt: skip
    parser.add_argument("--metric", metavar="NAME", help="what `runyard show --best` ranks by")
    parser.add_argument("--goal", choices=("minimize", "maximize"), default="minimize",
                        help="whether less or more is better (default: minimize)")  # fmt: skip
    parser.add_argument("--no-check", action="store_true",
                        help="submit it even if the program is not here, or does not know an "
                        "option")  # fmt: skip
    parser.add_argument("--dry-run", action="store_true",
                        help="show exactly what would be sent; make nothing")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    add_slurm_arguments(parser, default=cluster_kind())
    parser.add_argument("command_line", nargs=argparse.REMAINDER, metavar="-- PROGRAM ...",
                        help="the program (default: as runyard.yaml says)")  # fmt: skip
    parser.set_defaults(parser=parser)


def run(args: argparse.Namespace) -> int:
    behind_dashes = args.command_line[:1] == ["--"]
    words = args.command_line[1:] if behind_dashes else args.command_line
    if words and words[0].startswith("-") and not behind_dashes:
        args.parser.refuse_unknown(words)
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
    from runyard.cli.project_options import project_options
    from runyard.cli.starting.submission_view import cluster_options, show_submission, tell_outcome

    request = SubmitRequest(
        words,
        Path.cwd(),
        project_options(args),
        name=getattr(args, "name", None),
        seeds=getattr(args, "seeds", None),
        slots=getattr(args, "slots", 1),
        retries=getattr(args, "retries", None),
        metric=getattr(args, "metric", None),
        goal=getattr(args, "goal", "minimize"),
        checks_program=not args.no_check,
        cluster=cluster_options(args),
    )
    outcome = (
        submit(request, show_submission) if words else submit_project(request, show_submission)
    )
    return tell_outcome(outcome, as_json=getattr(args, "json", False))
