"""Run a program on this machine and track it.

  runyard run -- python train.py --lr 0.1
  runyard run -e baseline --tag paper -- python train.py    a name, and a tag to find it by
  runyard run                                            the command of runyard.yaml
  runyard run --tracking cloud -- python train.py        its wandb calls go to W&B's cloud

The program's own, unmodified wandb calls log to runyard's server; a program without any is
recorded too: its command, its console, how long it took and how it ended. The exit code is the
program's own; 127 where there is no such program, 126 where it cannot be run, 125 where runyard
itself failed before it began.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from runyard.actions.run import RunRequest
from runyard.actions.run import run as run_program
from runyard.cli.letters import spelled
from runyard.cli.output import show
from runyard.cli.project_options import add_tracking, project_options
from runyard.cli.slurm_options import add_slurm_arguments, refuse_slurm_options
from runyard.errors import ProgramError, RunyardError, UsageError
from runyard.schedulers.choice import has_queue


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "runyard run [options] [--] PROGRAM [ARGUMENTS ...]"
    parser.add_argument(
        *spelled("--project"), help="project (default: runyard.yaml's, or this folder's name)"
    )
    parser.add_argument(
        *spelled("--name"), help="name of the run (default: two words and a number)"
    )
    parser.add_argument("--tag", action="append", default=[], help="tag; may be repeated")
    parser.add_argument("--group", help="group of runs to which it belongs")
    parser.add_argument("--notes", help="a sentence about it")
    parser.add_argument(
        *spelled("--quiet"), action="store_true", help="print nothing but the program's"
    )
    parser.add_argument("--no-check", action="store_true",
                        help="with --on slurm: submit it even if the program is not here, or does "
                        "not know an option")  # fmt: skip
    parser.add_argument("--dry-run", action="store_true",
                        help="with --on slurm: show what would be sent")  # fmt: skip
    add_tracking(parser)
    add_slurm_arguments(parser)
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="PROGRAM",
                        help="the program; all that follows is its own")  # fmt: skip
    parser.set_defaults(parser=parser)


def run(args: argparse.Namespace) -> int:
    refuse_slurm_options(args)
    behind_dashes = args.program[:1] == ["--"]
    command = (args.program[1:] if behind_dashes else args.program) or _of_project(args)
    if not command:
        raise UsageError(
            "runyard run: which program?",
            mend="runyard run -- python train.py --lr 0.1; or write command: into runyard.yaml, or "
            "the command into experiment_configurations.txt",
        )
    if command[0].startswith("-") and not behind_dashes:
        args.parser.refuse_unknown(command)
    if has_queue(args.on):
        from runyard.cli.starting.submit import submit_command

        return submit_command(args, command)
    if args.dry_run:
        raise UsageError("--dry-run is for --on slurm", mend="add --on slurm, or leave it out")
    try:
        ran = run_program(_request(args, command), show)
    except (ProgramError, UsageError):
        raise
    except RunyardError as error:
        # 125, as `env` and `timeout` have it: not the program's own code, we failed before it.
        raise ProgramError(error.what, exit_code=125, said=error.said, mend=error.mend) from error
    sys.stdout.flush()
    sys.stderr.flush()
    return ran.program.end_likewise(ran.exit_code)


def _request(args: argparse.Namespace, command: list[str]) -> RunRequest:
    return RunRequest(
        command, project_options(args), args.name, args.group, args.notes, args.tag, args.quiet
    )


def _of_project(args: argparse.Namespace) -> list[str]:
    """The project's command, if it has one: it runs in the project's root, and its variables are
    this machine's here."""
    from runyard.cli.resource_flags import given_flags
    from runyard.config.project_file import read_project

    request = read_project(Path.cwd(), given_flags(args), needs_command=True)
    if request.command is None:
        return []
    os.chdir(request.folder)
    return [os.path.expandvars(word) for word in request.command]
