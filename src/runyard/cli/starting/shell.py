"""A shell on a compute node, with the resources and the environment of a job; or inside a job.

  runyard shell --gpus 1 --time 2h    as runyard.yaml says, changed by what is said here
  runyard shell --dry-run             exactly what would be asked, and run there; makes nothing
  runyard shell 4021                  into a job of yours that runs: look around, or come back
  runyard shell -- python train.py    one command there instead of a shell
  runyard shell --nodes 2             on the first of two nodes; srun there reaches both

Ending the shell gives the nodes back (--keep does not). If the connection drops, they stay yours
until the time is up: `runyard shell JOB` goes in again. In tmux or screen the shell itself stays.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from runyard.actions.shell import entry_of, plan_shell, preview_shell, work_in_shell
from runyard.actions.submitting.allocation import SCRIPT, enter
from runyard.actions.submitting.submission import Submission
from runyard.cli.completers import complete_job
from runyard.cli.connect import server
from runyard.cli.output import print_json, say, show
from runyard.cli.parser import add_program, flag
from runyard.cli.resource_flags import given_flags
from runyard.cli.slurm_options import add_slurm_arguments
from runyard.errors import UsageError
from runyard.schedulers.choice import cluster, cluster_kind


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "runyard shell [options] [JOB] [-- PROGRAM ARGUMENTS ...]"
    flag(parser, "--keep", "keep the nodes when the shell ends")
    flag(parser, "--dry-run", "show what would be asked")
    flag(parser, "--json", "with --dry-run: as JSON")
    add_slurm_arguments(parser, default=cluster_kind())
    add_program(parser, "a job that runs; a program instead of a shell", "[JOB] [-- PROGRAM ...]",
                completer=complete_job)  # fmt: skip


def run(args: argparse.Namespace) -> int:
    job, command = _split(args)
    if job is not None:
        entry = entry_of(server(), job, command)
        if not args.dry_run:
            return enter(entry)
        print(shlex.join(entry))
        return 0
    submission = plan_shell(given_flags(args), Path.cwd(), show, dry_run=args.dry_run)
    if args.dry_run:
        return _preview(submission, command, as_json=args.json)
    if not sys.stdin.isatty() and not command:
        raise UsageError(
            "runyard shell needs a terminal", mend="runyard shell -- PROGRAM; or runyard submit"
        )
    for note in (*submission.request.warnings, *submission.plan.notes):
        say(note)
    say(shlex.join(cluster().allocation_words(submission.plan.header)))
    return work_in_shell(server(), submission, command, show, keep=args.keep)


def _split(args: argparse.Namespace) -> tuple[str | None, list[str]]:
    """A job's number, and the command behind the dashes."""
    words: list[str] = args.program
    place = words.index("--") if "--" in words else len(words)
    before, command = words[:place], words[place + 1 :]
    if before and before[0].startswith("-"):
        args.parser.refuse_unknown(before)
    if len(before) > 1:
        raise UsageError(
            f"runyard shell: {before[1]!r} is one word too many",
            mend="what is to be run there stands behind --",
        )
    return (before[0] if before else None), command


def _preview(submission: Submission, command: list[str], *, as_json: bool) -> int:
    shown = preview_shell(submission, command)
    if as_json:
        print_json({"allocate": shown.allocation, "enter": shown.entry, "script": shown.script})
        return 0
    for note in (*submission.request.warnings, *submission.plan.notes):
        say(note)
    print(shlex.join(shown.allocation))
    print(shlex.join(shown.entry))
    print(f"\n# {SCRIPT}")
    print(shown.script, end="")
    say("nothing was made or asked for")
    return 0
