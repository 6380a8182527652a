"""`runyard server submit`, and what the other actions do where the server is a Slurm job."""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import runyard
from runyard.actions.own_jobs import remember
from runyard.cli.output import print_json, say
from runyard.cli.server_access import access_options
from runyard.client.discover import find_server, stop_server, take_over
from runyard.client.server_jobs import ServerJobs, forget_server_jobs, read_server_jobs
from runyard.errors import ServerError
from runyard.home import Home, prepare

if TYPE_CHECKING:
    from runyard.config.request import Request

_DAY = 86_400.0
_LINKS = 7
_TAKE_OVER_SECONDS = 120.0


def add_submit_arguments(parser: argparse.ArgumentParser) -> None:
    from runyard.cli.parser import duration, positive

    group = parser.add_argument_group("with submit")
    group.add_argument("--time", type=duration, help="length of each job (default: a day)")
    group.add_argument(
        "--links", type=positive, default=_LINKS, metavar="N",
        help=f"jobs that take over from each other (default {_LINKS})",
    )  # fmt: skip
    for name, what in (
        ("account", "who pays"), ("partition", "partition"), ("qos", "quality of service"),
    ):  # fmt: skip
        group.add_argument(f"--{name}", metavar="NAME", help=what)
    group.add_argument(
        "--sbatch", action="append", default=[], metavar="OPTION",
        help="any other option of sbatch, as sbatch takes it",
    )  # fmt: skip
    group.add_argument("--dry-run", action="store_true", help="show the script, submit nothing")


def submit(home: Home, args: argparse.Namespace) -> int:
    from runyard.launch.own_jobs import own_script
    from runyard.launch.serving import describe_job, server_job, submit_server
    from runyard.schedulers.slurm.commands import find_slurm

    request = _request(args)
    options = access_options(args)
    seconds = args.time or _DAY
    source = str(Path(runyard.__file__).resolve().parent.parent)
    if args.dry_run:
        job = server_job(
            home, request, python=sys.executable, source=source, seconds=seconds, options=options
        )
        print(own_script(job, request, home.path / "jobs" / "server-TIME"), end="")
        return 0
    find_slurm()
    prepare(home)
    before = read_server_jobs(home)
    if before is not None and (left := _alive(before)):
        raise ServerError(
            f"the server is a job already: {', '.join(left)}",
            mend="`runyard server stop` cancels them; then submit it anew",
        )
    jobs = submit_server(
        home, request, python=sys.executable, source=source, seconds=seconds, links=args.links,
        environ=os.environ, options=options, notice=say,
    )  # fmt: skip
    if args.json:
        print_json({"jobs": jobs.ids, "folder": jobs.folder})
    else:
        print("\n".join(jobs.ids))
    say(f"submitted the server: {describe_job(seconds, args.links)}; logs in {jobs.folder}")
    if find_server(home) is not None:
        say("the server that runs now goes on until the first of them takes over")
    say("watch it:  runyard server status")
    remember(home, "server", jobs.ids, jobs.folder, jobs.submitted_at)
    return 0


def run(home: Home, args: argparse.Namespace) -> int:
    """What the job runs: be the server, after whoever was it before. Does not come back."""
    prepare(home)
    dead = take_over(home, _TAKE_OVER_SECONDS)
    words = [sys.executable, "-m", "runyard.server", "--home", str(home.path)]
    if dead is not None:
        words += ["--dead-owner", dead.moment]
    if args.listen is not None:
        words += ["--listen", args.listen]
    if args.port is not None:
        words += ["--port", str(args.port)]
    words += access_options(args)
    print(f"{time.strftime('%H:%M:%S')} serving {home.path}", flush=True)
    os.execv(words[0], words)  # noqa: S606  (The job's signals are then the server's.)


def stop(home: Home, jobs: ServerJobs, *, force: bool) -> int:
    """Cancel all of them: one that waits would bring the server back."""
    from runyard.schedulers.slurm.queue import cancel

    cancel(jobs.ids)
    forget_server_jobs(home)
    take_over(home, _TAKE_OVER_SECONDS) if not force else stop_server(home, force=True)
    print(f"stopped the server of {home.path} and cancelled {jobs.said()}")
    return 0


def forget_ended(home: Home) -> None:
    """Forget jobs of which Slurm knows none any more: the server may start here then."""
    jobs = read_server_jobs(home)
    if jobs is not None and not _alive(jobs):
        forget_server_jobs(home)
        say(f"the server's {jobs.said()} ended; it starts on this machine")


def refuse_restart(home: Home) -> None:
    jobs = read_server_jobs(home)
    if jobs is not None:
        raise ServerError(
            f"the server is a Slurm job ({jobs.said()})",
            mend="`runyard server stop` and then `runyard server submit` begin anew",
        )


def status_line(home: Home) -> str | None:
    """How the server's jobs stand, in a line."""
    from runyard.errors import RunyardError
    from runyard.schedulers.slurm.queue import poll

    jobs = read_server_jobs(home)
    if jobs is None:
        return None
    try:
        found = poll(jobs.ids)
    except RunyardError as error:
        return f"it is a Slurm job ({jobs.said()}); {error.what}"
    remember(home, "server", jobs.ids, jobs.folder, jobs.submitted_at)
    told = []
    for job_id in jobs.ids:
        state = next(iter(found[job_id].states))
        reason = found[job_id].reason
        told.append(f"{job_id} {state.lower()}" + (f" ({reason})" if reason else ""))
    return f"it is a Slurm job: {', '.join(told)}; logs in {jobs.folder}"


def _alive(jobs: ServerJobs) -> list[str]:
    from runyard.schedulers.slurm.queue import poll

    found = poll(jobs.ids)
    return [job_id for job_id in jobs.ids if found[job_id].is_open]


def _request(args: argparse.Namespace) -> Request:
    """The settings for the cluster of the project that we stand in, not those of its trials."""
    from runyard.config.project_file import read_project

    request = read_project(Path.cwd())
    asked = request.resources
    resources = replace(
        type(asked)(),
        account=args.account or asked.account,
        partition=args.partition or asked.partition,
        qos=args.qos or asked.qos,
        extra=tuple(args.sbatch),
    )
    return replace(request, resources=resources)
