"""End a sweep with its jobs and all that runs of it, one trial, or a job, at once.

  runyard cancel SWEEP     its trials end, and its jobs, waiting ones too
  runyard cancel TRIAL     that one alone
  runyard cancel 4021      a job, by Slurm's number; 4021_7 is one of its tasks

A sweep's trials that have not run are not run; `runyard sweep --resume SWEEP` brings them back. The
trials of a job go back to their sweep's queue. To let finish what runs, `runyard stop SWEEP`. On a
terminal it asks before it ends many; --yes does not.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from runyard.actions import naming
from runyard.cli.completers import NAMED, complete_named
from runyard.cli.connect import server
from runyard.cli.letters import spelled
from runyard.cli.output import print_json, say
from runyard.cli.sweep_steer import steer_sweep
from runyard.client.api import Api
from runyard.client.jobs import Job
from runyard.client.sweeps import Sweep
from runyard.errors import RunyardError, UsageError

_MANY = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_argument("what", metavar=NAMED, help="what is to end")
    which.completer = complete_named  # type: ignore[attr-defined]
    parser.add_argument(*spelled("--yes"), action="store_true", help="do not ask")
    parser.add_argument("--json", action="store_true", help="print what became of it as JSON")


def run(args: argparse.Namespace) -> int:
    api = server()
    found = naming.find(api, args.what)
    if found.sweep is not None:
        return _cancel_sweep(api, found.sweep, args)
    if found.job is not None:
        return _cancel_job(api, found.job, found.task, args)
    if found.number is not None:
        return _cancel_stranger(found.number, found.task, args)
    assert found.run is not None
    asked = api.stop_run(found.run)
    if args.json:
        print_json(asked)
    elif asked["stop_asked"]:
        say(f"trial {asked['name']} ({asked['id']}) is asked to end")
    else:
        say(f"trial {asked['name']} ({asked['id']}) has ended already: {asked['state']}")
    return 0


def _cancel_sweep(api: Api, sweep: Sweep, args: argparse.Namespace) -> int:
    jobs = [job for job in api.jobs.jobs(sweep=sweep["key"], open_only=True) if job["mine"]]
    tasks = sum(job["tasks"] for job in jobs)
    running = sweep["counts"]["running"]
    if running > _MANY or tasks > _MANY:
        more = f" and {_these(jobs)} ({tasks} tasks)" if jobs else ""
        _ask(f"end sweep {sweep['id']} with {running} running trials{more}?", args)
    # First the sweep: what its agents hand back when they are ended must not be handed out again.
    code = steer_sweep(api, sweep, "cancel", as_json=args.json)
    if jobs:
        _end_jobs(api, jobs)
        say(f"{_these(jobs)} of it {'is' if len(jobs) == 1 else 'are'} cancelled")
    return code


def _cancel_job(api: Api, job: Job, task: str | None, args: argparse.Namespace) -> int:
    if job["ended_at"] is not None:
        say(f"job {job['job_id']} has ended already")
        return 0
    which = f"{job['job_id']}_{task}" if task is not None else job["job_id"]
    if task is None and job["tasks"] > _MANY:
        _ask(f"end job {which} with its {job['tasks']} tasks?", args)
    after = _end_jobs(api, [job], which)
    if args.json:
        print_json(after[0])
        return 0
    say(f"job {which} is cancelled")
    if job["sweep_id"]:
        say(f"what it ran goes back to the queue of sweep {job['sweep_id']}; to end the sweep too: "
            f"`runyard cancel {job['sweep_id']}`")  # fmt: skip
    return 0


def _cancel_stranger(number: str, task: str | None, args: argparse.Namespace) -> int:
    from runyard.actions.watching.foreign_jobs import foreign_job
    from runyard.schedulers.slurm.queue import cancel

    job = foreign_job(number)
    if job["ended_at"] is not None:
        say(f"job {number} has ended already")
        return 0
    which = f"{number}_{task}" if task is not None else number
    _ask(f"job {which} was not submitted by runyard; end it?", args)
    cancel([which])
    if args.json:
        print_json(job)
    say(f"job {which} is cancelled")
    return 0


def _end_jobs(api: Api, jobs: list[Job], which: str | None = None) -> list[Any]:
    """Cancel them at Slurm, and tell the server how they stand then."""
    from runyard.launch.watching import look
    from runyard.schedulers.slurm.name import cluster_name
    from runyard.schedulers.slurm.queue import cancel

    here = cluster_name()
    away = [job for job in jobs if job["cluster"] not in (here, "")]
    if away:
        raise UsageError(
            f"{_these(away)} is not on this cluster but on {away[0]['cluster']}",
            mend=f"log in there and type the same; or `scancel {away[0]['job_id']}` there",
        )
    try:
        cancel([which] if which is not None else [job["job_id"] for job in jobs])
    except RunyardError as error:
        error.mend = error.mend or f"`scancel {jobs[0]['job_id']}` by hand says more"
        raise
    return list(look(api.jobs, jobs).jobs)


def _ask(question: str, args: argparse.Namespace) -> None:
    if args.yes or args.json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    print(f"runyard: {question} [y/N] ", end="", file=sys.stderr, flush=True)
    if input().strip().lower() not in ("y", "yes"):
        raise UsageError("nothing was cancelled", mend="--yes does it without asking")


def _these(jobs: list[Job]) -> str:
    numbers = ", ".join(job["job_id"] for job in jobs[:3])
    more = f" and {len(jobs) - 3} more" if len(jobs) > 3 else ""
    return f"job{'s' if len(jobs) > 1 else ''} {numbers}{more}"
