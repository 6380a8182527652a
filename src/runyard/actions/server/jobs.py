"""The server as a chain of Slurm jobs, where login nodes forbid daemons."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from runyard.actions.cluster.own_jobs import remember
from runyard.actions.events import Notice, Notify, in_words
from runyard.actions.server.access import Access
from runyard.client.discover import find_server, stop_server, take_over
from runyard.client.server_jobs import ServerJobs, forget_server_jobs, read_server_jobs
from runyard.errors import RunyardError, ServerError
from runyard.home import SOURCE, Home, prepare

if TYPE_CHECKING:
    from runyard.config.request import Request

DAY = 86_400.0
LINKS = 7
_TAKE_OVER_SECONDS = 120.0


@dataclass(frozen=True)
class ServerJobRequest:
    """`folder`: the project whose cluster settings count; `links`: jobs of `seconds` each, which
    take over from each other; `extra`: other options of the scheduler."""

    folder: Path
    access: Access
    seconds: float = DAY
    links: int = LINKS
    account: str | None = None
    partition: str | None = None
    qos: str | None = None
    extra: tuple[str, ...] = ()


@dataclass(frozen=True)
class ServerSubmitted:
    """`server_runs`: one runs now, until the first of the jobs takes over."""

    jobs: ServerJobs
    described: str
    server_runs: bool


def script_of(home: Home, request: ServerJobRequest) -> str:
    """The script of each job; makes nothing."""
    from runyard.launch.own_jobs import own_script
    from runyard.launch.serving import server_job
    from runyard.schedulers.choice import cluster

    settings = _settings(request)
    job = server_job(
        home, settings, python=sys.executable, source=SOURCE, seconds=request.seconds,
        options=request.access.options(),
    )  # fmt: skip
    return own_script(job, settings, home.path / "jobs" / "server-TIME", cluster())


def submit_server_jobs(home: Home, request: ServerJobRequest, notify: Notify) -> ServerSubmitted:
    from runyard.launch.serving import describe_job, submit_server
    from runyard.schedulers.choice import cluster

    settings, options = _settings(request), request.access.options()
    cluster().demand()
    prepare(home)
    before = read_server_jobs(home)
    if before is not None and (left := _alive(before)):
        raise ServerError(
            f"the server is a job already: {', '.join(left)}",
            mend="`runyard server stop` cancels them; then submit it anew",
        )
    jobs = submit_server(
        home, settings, python=sys.executable, source=SOURCE, seconds=request.seconds,
        links=request.links, environ=os.environ, options=options, notice=in_words(notify),
    )  # fmt: skip
    remember(home, "server", jobs.ids, jobs.folder, jobs.submitted_at)
    described = describe_job(request.seconds, request.links)
    return ServerSubmitted(jobs, described, find_server(home) is not None)


def server_command(
    home: Home, access: Access, *, listen: str | None, port: int | None
) -> list[str]:
    """What a job runs to be the server, after whoever was it before has ended."""
    prepare(home)
    dead = take_over(home, _TAKE_OVER_SECONDS)
    words = [sys.executable, "-m", "runyard.server", "--home", str(home.path)]
    if dead is not None:
        words += ["--dead-owner", dead.moment]
    if listen is not None:
        words += ["--listen", listen]
    if port is not None:
        words += ["--port", str(port)]
    return words + access.options()


def stop(home: Home, jobs: ServerJobs, *, force: bool) -> None:
    """Cancel all of them: one that waits would bring the server back."""
    from runyard.schedulers.choice import cluster

    cluster().cancel(jobs.ids)
    forget_server_jobs(home)
    take_over(home, _TAKE_OVER_SECONDS) if not force else stop_server(home, force=True)


def forget_ended(home: Home, notify: Notify) -> None:
    """Forget jobs of which Slurm knows none any more: the server may start here then."""
    jobs = read_server_jobs(home)
    if jobs is not None and not _alive(jobs):
        forget_server_jobs(home)
        notify(Notice(f"the server's {jobs.said()} ended; it starts on this machine"))


def refuse_restart(home: Home) -> None:
    jobs = read_server_jobs(home)
    if jobs is not None:
        raise ServerError(
            f"the server is a Slurm job ({jobs.said()})",
            mend="`runyard server stop` and then `runyard server submit` begin anew",
        )


def status_line(home: Home) -> str | None:
    """How the server's jobs stand, in a line."""
    from runyard.schedulers.choice import cluster

    jobs = read_server_jobs(home)
    if jobs is None:
        return None
    try:
        states = cluster().poll(jobs.ids)
    except RunyardError as error:
        return f"it is a Slurm job ({jobs.said()}); {error.what}"
    remember(home, "server", jobs.ids, jobs.folder, jobs.submitted_at)
    parts = []
    for job_id in jobs.ids:
        state = next(iter(states[job_id].states))
        reason = states[job_id].reason
        parts.append(f"{job_id} {state.lower()}" + (f" ({reason})" if reason else ""))
    return f"it is a Slurm job: {', '.join(parts)}; logs in {jobs.folder}"


def _alive(jobs: ServerJobs) -> list[str]:
    from runyard.schedulers.choice import cluster

    states = cluster().poll(jobs.ids)
    return [job_id for job_id in jobs.ids if states[job_id].is_open]


def _settings(request: ServerJobRequest) -> Request:
    """The settings for the cluster of the project that we stand in, not those of its trials."""
    from runyard.config.project_file import read_project

    project = read_project(request.folder)
    own = project.resources
    resources = replace(
        type(own)(),
        account=request.account or own.account,
        partition=request.partition or own.partition,
        qos=request.qos or own.qos,
        extra=request.extra,
    )
    return replace(project, resources=resources)
