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

from runyard.actions.ending import cancel as ending
from runyard.actions.events import Event
from runyard.cli.completers import NAMED, complete_named
from runyard.cli.connect import server
from runyard.cli.output import print_json, say
from runyard.cli.parser import add, flag
from runyard.cli.questions import ask_sure
from runyard.cli.watching.sweep_view import print_steered


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add(parser, "what", "what is to end", metavar=NAMED, completer=complete_named)
    flag(parser, "--finish", "of a sweep: let what runs finish, begin nothing new")
    flag(parser, "-y --yes", "do not ask")
    flag(parser, "--json", "print what became of it as JSON")


def run(args: argparse.Namespace) -> int:
    def confirm(question: str) -> bool:
        asks = not (args.yes or args.json) and sys.stdin.isatty() and sys.stderr.isatty()
        return not asks or ask_sure(f"runyard: {question}")

    def show(event: Event) -> None:
        if isinstance(event, ending.SweepCancelled):
            print_steered(event.before, event.after, "cancel", as_json=args.json)

    result = ending.cancel(server(), args.what, confirm, show, finish=args.finish)
    if isinstance(result, ending.JobsCancelled):
        if result.jobs:
            are = "is" if len(result.jobs) == 1 else "are"
            say(f"{ending.names_of(result.jobs)} of it {are} cancelled")
    elif isinstance(result, ending.JobCancelled):
        _print_job(result, as_json=args.json)
    elif args.json:
        print_json(result.after)
    else:
        say(result.in_words())
    return 0


def _print_job(result: ending.JobCancelled, *, as_json: bool) -> None:
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
