"""Run a program as a job of the cluster, and come back at once.

  runyard submit -- python train.py --lr 0.1
  runyard submit --gpus 1 --time 2h --seeds 5 -- python train.py    a job a seed
  runyard submit                       the command, or the sweep, that runyard.yaml names; or the
                                       command in experiment_configurations.txt
  runyard submit --dry-run -- python train.py      exactly what would be sent; makes nothing

The program runs in a copy of the code as it is now, so that the project can be worked on while the
job waits. ${NAME} in the command is a variable of the node, such as ${SLURM_TMPDIR}. On a terminal
what will be asked of Slurm is shown first; --yes answers. The job's exit code is the program's.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from runyard.cli.letters import spelled
from runyard.cli.output import say
from runyard.cli.parser import count, positive
from runyard.cli.slurm_options import add_slurm_arguments
from runyard.cli.starting.repeat import seeds
from runyard.errors import UsageError
from runyard.schedulers.choice import cluster_kind, has_queue

_SHARED_OPTIONS = ("yes", "no_snapshot", "dry_run", "json", "slots")


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
    if words:
        return submit_command(args, words)
    return _submit_project(args)


def submit_command(
    args: argparse.Namespace, words: Sequence[str], *, folder: Path | None = None
) -> int:
    """Also for `runyard run --on slurm`, which has fewer options."""
    from runyard.actions.submit import SubmitRequest, submit
    from runyard.cli.project_options import project_options
    from runyard.cli.starting.submission_view import cluster_options, show_submission, tell_outcome

    request = SubmitRequest(
        words,
        folder or Path.cwd(),
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
    return tell_outcome(submit(request, show_submission), as_json=getattr(args, "json", False))


def _submit_project(args: argparse.Namespace) -> int:
    """What runyard.yaml says is to be run, in the project's root."""
    from runyard.actions.naming import find_sweep
    from runyard.cli.resource_flags import given_flags
    from runyard.config.flags import Given
    from runyard.config.project_file import read_project

    request = read_project(Path.cwd(), given_flags(args), needs_command=True)
    file = request.origins.get("command_file", "")
    if Path(file).is_absolute():  # The usual one: the plan is to read it too.
        setattr(args, "request:command_file", Given(file, file))
    if request.sweep_id is not None:
        from runyard.cli.connect import server
        from runyard.cli.starting.agents import add_on_slurm

        return add_on_slurm(args, find_sweep(server(), request.sweep_id))
    if request.command is not None:
        say(f"the command is that of {file or 'runyard.yaml'}")
        return submit_command(args, request.command, folder=request.folder)
    if request.sweep_file is not None:
        return _submit_sweep(args, str(request.folder / request.sweep_file))
    raise UsageError(
        "runyard submit: which program?",
        mend="runyard submit -- python train.py; or write command: or sweep: into runyard.yaml, or "
        "the command into experiment_configurations.txt",
    )


def _submit_sweep(args: argparse.Namespace, file: str) -> int:
    """As `runyard sweep FILE --on slurm` with the same options."""
    from runyard.cli.parser import build_parser
    from runyard.cli.starting import sweep

    parser, _ = build_parser("sweep")
    asked = parser.parse_args(["sweep", file, "--on", args.on])
    for name, value in vars(args).items():
        if name.startswith("request:") or name in _SHARED_OPTIONS:
            setattr(asked, name, value)
    return sweep.run(asked)
