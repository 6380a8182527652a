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
import os
import shlex
import sys
from pathlib import Path

from runyard.actions import naming
from runyard.actions.submitting.allocation import (
    SCRIPT,
    allocate_for,
    enter,
    enter_job,
    give_back,
    inside,
)
from runyard.actions.submitting.planning import SubmissionRequest, plan_submission
from runyard.actions.submitting.submission import ClusterOptions, Submission
from runyard.cli.completers import complete_job
from runyard.cli.connect import server
from runyard.cli.output import print_json, say, show
from runyard.cli.resource_flags import given_flags
from runyard.cli.slurm_options import add_slurm_arguments
from runyard.client.api import Api
from runyard.errors import UsageError
from runyard.schedulers.choice import cluster, cluster_kind


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "runyard shell [options] [JOB] [-- PROGRAM ARGUMENTS ...]"
    parser.add_argument("--keep", action="store_true", help="keep the nodes when the shell ends")
    parser.add_argument("--dry-run", action="store_true", help="show what would be asked")
    parser.add_argument("--json", action="store_true", help="with --dry-run: as JSON")
    add_slurm_arguments(parser, default=cluster_kind())
    words = parser.add_argument("words", nargs=argparse.REMAINDER, metavar="[JOB] [-- PROGRAM ...]",
                                help="a job that runs; a program instead of a shell")  # fmt: skip
    words.completer = complete_job  # type: ignore[attr-defined]
    parser.set_defaults(parser=parser)


def run(args: argparse.Namespace) -> int:
    job, command = _split(args)
    if job is not None:
        return _go_in(args, job, command)
    wanted = SubmissionRequest(
        "shell",
        Path.cwd(),
        1,
        given_flags(args),
        cluster=ClusterOptions(args.dry_run, copies_code=False),
    )
    submission = plan_submission(wanted, show)
    if args.dry_run:
        return _preview(submission, command, as_json=args.json)
    if not sys.stdin.isatty() and not command:
        raise UsageError(
            "runyard shell needs a terminal", mend="runyard shell -- PROGRAM; or runyard submit"
        )
    for note in (*submission.request.warnings, *submission.plan.notes):
        say(note)
    say(shlex.join(cluster().allocation_words(submission.plan.header)))
    return _work(server(), submission, command, keep=args.keep)


def _split(args: argparse.Namespace) -> tuple[str | None, list[str]]:
    """A job's number, and the command behind the dashes."""
    words: list[str] = args.words
    if "--" in words:
        place = words.index("--")
        before, command = words[:place], words[place + 1 :]
    else:
        before, command = words, []
    if before and before[0].startswith("-"):
        args.parser.refuse_unknown(before)
    if len(before) > 1:
        raise UsageError(
            f"runyard shell: {before[1]!r} is one word too many",
            mend="what is to be run there stands behind --",
        )
    return (before[0] if before else None), command


def _work(api: Api, submission: Submission, command: list[str], *, keep: bool) -> int:
    from runyard.launch.script import shell_script

    plan = submission.plan
    job = allocate_for(api, submission, shell_script(plan), kind="shell")
    number = job["job_id"]
    if not (os.environ.get("TMUX") or os.environ.get("STY")):
        say(f"if the connection drops, `runyard shell {number}` goes in again")
    code = enter_job(job, plan.profile.script.shell, command)
    if keep:
        say(f"job {number} is kept: `runyard shell {number}`, and `runyard cancel {number}`")
    else:
        give_back(api, job)
    return code


def _go_in(args: argparse.Namespace, words: str, command: list[str]) -> int:
    """Into a job that runs."""
    from runyard.launch.watching import look

    api = server()
    found = naming.find(api, words)
    if found.sweep is not None or found.run is not None:
        raise UsageError(
            f"{words!r} is no job", mend="`runyard status` shows which job a trial is in"
        )
    number, cpus = found.number or "", None
    there = command or [os.environ.get("SHELL") or "/bin/sh", "-i"]
    if found.job is not None:
        [job] = look(api.jobs, [found.job]).jobs
        if job["ended_at"] is not None:
            raise UsageError(f"job {job['job_id']} has ended", mend="`runyard shell` starts one")
        number, cpus = job["job_id"], job["asked"].get("cpus")
        if job["array"] is not None and found.task is None:
            raise UsageError(
                f"job {number} has {job['tasks']} tasks", mend=f"name one: runyard shell {number}_1"
            )
        script = Path(job["folder"]) / SCRIPT
        if job["kind"] == "shell" and script.is_file():
            there = inside("bash", script, command)
    scheduler = cluster()
    number = scheduler.entry_number(number, found.task)
    entry = scheduler.entry_words(number, there, cpus, on_terminal=sys.stdin.isatty())
    if args.dry_run:
        print(shlex.join(entry))
        return 0
    return enter(entry)


def _preview(submission: Submission, command: list[str], *, as_json: bool) -> int:
    from runyard.launch.script import shell_script

    plan, scheduler = submission.plan, cluster()
    allocation = scheduler.allocation_words(plan.header)
    there = inside(plan.profile.script.shell, plan.places.job / SCRIPT, command)
    entry = scheduler.entry_words("JOB", there, plan.asked.get("cpus"))
    if as_json:
        print_json({"allocate": allocation, "enter": entry, "script": shell_script(plan)})
        return 0
    for note in (*submission.request.warnings, *plan.notes):
        say(note)
    print(shlex.join(allocation))
    print(shlex.join(entry))
    print(f"\n# {SCRIPT}")
    print(shell_script(plan), end="")
    say("nothing was made or asked for")
    return 0
