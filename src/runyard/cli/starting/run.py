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
import sys

from runyard.actions.run import RunRequest, project_command
from runyard.actions.run import run as run_program
from runyard.cli.option_groups import add_tracking, project_options
from runyard.cli.output import show
from runyard.cli.parser import add, add_program, flag, program_words
from runyard.cli.slurm_options import add_slurm_arguments, refuse_slurm_options
from runyard.errors import ProgramError, RunyardError, UsageError
from runyard.schedulers.choice import has_queue


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "runyard run [options] [--] PROGRAM [ARGUMENTS ...]"
    add(parser, "-P --project", "project (default: runyard.yaml's, or this folder's name)")
    add(parser, "-e --name", "name of the run (default: two words and a number)")
    add(parser, "--tag", "tag; may be repeated", action="append", default=[])
    add(parser, "--group", "group of runs to which it belongs")
    add(parser, "--notes", "a sentence about it")
    flag(parser, "-q --quiet", "print nothing but the program's")
    flag(parser, "--no-check", "with --on slurm: submit it even if the program is not here, or "
         "does not know an option")  # fmt: skip
    flag(parser, "--dry-run", "with --on slurm: show what would be sent")
    add_tracking(parser)
    add_slurm_arguments(parser)
    add_program(parser, "the program; all that follows is its own", "PROGRAM")


def run(args: argparse.Namespace) -> int:
    refuse_slurm_options(args)
    command = program_words(args) or project_command(project_options(args))
    if not command:
        raise UsageError(
            "runyard run: which program?",
            mend="runyard run -- python train.py --lr 0.1; or write command: into runyard.yaml, or "
            "the command into experiment_configurations.txt",
        )
    if has_queue(args.on):
        from runyard.cli.starting.submit import submit_command

        return submit_command(args, command)
    if args.dry_run:
        raise UsageError("--dry-run is for --on slurm", mend="add --on slurm, or leave it out")
    try:
        request = RunRequest(
            command, project_options(args), args.name, args.group, args.notes, args.tag, args.quiet
        )
        ran = run_program(request, show)
    except (ProgramError, UsageError):
        raise
    except RunyardError as error:
        # 125, as `env` and `timeout` have it: not the program's own code, we failed before it.
        raise ProgramError(error.what, exit_code=125, said=error.said, mend=error.mend) from error
    sys.stdout.flush()
    sys.stderr.flush()
    return ran.program.end_likewise(ran.exit_code)
