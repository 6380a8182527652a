"""End a sweep with its jobs and all that runs of it, one run, or a job.

  runyard cancel SWEEP            its trials end, and its jobs, waiting ones too
  runyard cancel SWEEP --finish   what runs finishes, nothing new begins
  runyard cancel TRIAL            a trial or a run: it ends as by Ctrl-C, and keeps what it logged
  runyard cancel 4021             a job, by Slurm's number; 4021_7 is one of its tasks

A sweep's trials that have not run are not run; `runyard sweep --resume SWEEP` brings them back. The
trials of a job go back to their sweep's queue. A run's client hears of it within seconds, or half a
minute, and ends the program as Ctrl-C would; the run ends as killed. A program without wandb gets
SIGTERM from the `runyard run` beside it. On a terminal it asks before it ends many; --yes does not.
"""

from __future__ import annotations

import argparse
import sys

from runyard.actions.ending.cancel import (
    JobCancelled,
    JobsCancelled,
    RunCancelled,
    SweepCancelled,
    cancel,
    names_of,
)
from runyard.actions.events import Event
from runyard.cli.completers import NAMED, complete_named
from runyard.cli.connect import server
from runyard.cli.letters import spelled
from runyard.cli.output import print_json, say
from runyard.cli.questions import ask_sure
from runyard.cli.watching.sweep_view import print_steered


def add_arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_argument("what", metavar=NAMED, help="what is to end")
    which.completer = complete_named  # type: ignore[attr-defined]
    parser.add_argument(
        "--finish", action="store_true", help="of a sweep: let what runs finish, begin nothing new"
    )
    parser.add_argument(*spelled("--yes"), action="store_true", help="do not ask")
    parser.add_argument("--json", action="store_true", help="print what became of it as JSON")


def run(args: argparse.Namespace) -> int:
    def confirm(question: str) -> bool:
        asks = not (args.yes or args.json) and sys.stdin.isatty() and sys.stderr.isatty()
        return not asks or ask_sure(f"runyard: {question}")

    def show(event: Event) -> None:
        if isinstance(event, SweepCancelled):
            print_steered(event.before, event.after, "cancel", as_json=args.json)

    result = cancel(server(), args.what, confirm, show, finish=args.finish)
    if isinstance(result, JobsCancelled):
        if result.jobs:
            are = "is" if len(result.jobs) == 1 else "are"
            say(f"{names_of(result.jobs)} of it {are} cancelled")
    elif isinstance(result, JobCancelled):
        _print_job(result, as_json=args.json)
    elif args.json:
        print_json(result.after)
    else:
        _print_run(result)
    return 0


def _print_run(result: RunCancelled) -> None:
    run = result.after
    if run["stop_asked"] and run["state"] != "killed":
        say(f"run {run['id']} was asked to stop; `runyard show {run['id']}` says when it has")
    elif result.before["state"] == "pending":
        say(f"run {run['id']} had not started, and will not")
    else:
        say(f"run {run['id']} has ended already ({run['state']})")


def _print_job(result: JobCancelled, *, as_json: bool) -> None:
    job = result.job
    if result.had_ended:
        say(f"job {job['job_id']} has ended already")
        return
    if as_json:
        print_json(job)
        if not result.is_foreign:
            return
    say(f"job {result.which} is cancelled")
    if job["sweep_id"]:
        say(f"what it ran goes back to the queue of sweep {job['sweep_id']}; to end the sweep too: "
            f"`runyard cancel {job['sweep_id']}`")  # fmt: skip
