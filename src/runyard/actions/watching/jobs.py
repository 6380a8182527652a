"""Jobs, newest first: what each asked for, and what it used."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from runyard.actions import naming
from runyard.client.api import Api
from runyard.errors import NotFoundError, RunyardError
from runyard.launch.watching import Looked, account_for, look
from runyard.schedulers.choice import cluster
from runyard.schedulers.errors import NoAccounting
from runyard.schedulers.jobs import Record
from runyard.shapes.jobs import Job, JobDetail

_DAY = 86400.0


@dataclass(frozen=True)
class JobList:
    """`note` says why accounting tells nothing of them."""

    jobs: list[Job]
    looked: Looked
    note: str | None


@dataclass(frozen=True)
class JobAccount:
    """One job as it is now, with what it used; `detail` has its agents."""

    job: Job
    detail: JobDetail
    looked: Looked
    note: str | None
    script: str | None


@dataclass(frozen=True)
class Use:
    """What was used, and what was had of it; None where nobody knows."""

    used: float | None
    had: float | None

    @property
    def share(self) -> str:
        known = self.used is not None and self.had
        return f"{100 * (self.used or 0.0) / (self.had or 1.0):.0f}%" if known else "-"


@dataclass(frozen=True)
class JobUse:
    """Seconds of the longest task, CPU seconds of all, bytes of the largest."""

    time: Use
    cpu: Use
    memory: Use


def use_of_job(job: Job) -> JobUse:
    """As far as accounting or agents have told."""
    used, requested = job["used"], job["asked"]
    memory = used.get("memory_asked") or (requested.get("memory") or 0) << 20
    return JobUse(
        Use(used.get("longest_seconds"), used.get("limit_seconds") or requested.get("time")),
        Use(used.get("cpu_seconds"), used.get("cpu_seconds_held")),
        Use(used.get("memory_peak"), memory),
    )


def use_so_far(job: Job) -> JobUse:
    """With the time since its start, where no task has told how long it took."""
    use = use_of_job(job)
    if use.time.used is not None or job["started_at"] is None:
        return use
    seconds = max(0.0, (job["ended_at"] or time.time()) - job["started_at"])
    return replace(use, time=Use(seconds, use.time.had))


def use_of_record(record: Record) -> JobUse:
    return JobUse(
        Use(record.seconds, record.limit),
        Use(record.cpu_seconds, record.cpus * record.seconds),
        Use(record.memory_peak, record.memory_asked),
    )


def choose_jobs(api: Api, words: str | None, limit: int | None) -> list[Job] | JobDetail:
    """A sweep's jobs or all, at most `limit` of them; or the one job that is named."""
    if words is None:
        return api.jobs.jobs(limit=limit)
    named = naming.find(api, words)
    if named.sweep is not None:
        return api.jobs.jobs(sweep=named.sweep["key"], limit=limit)
    if named.job is not None:
        return named.job
    if named.run is not None:
        if named.run["job"] is None:
            raise NotFoundError(
                f"{named.run['name']} ({named.run['id']}) ran in no job",
                mend="`runyard status --jobs`",
            )
        return api.jobs.job(named.run["job"])
    from runyard.actions.watching.foreign_jobs import foreign_job

    return {**foreign_job(named.number or ""), "agents": [], "script": None, "environment": {}}


def look_at_jobs(api: Api, jobs: list[Job]) -> JobList:
    looked = look(api.jobs, jobs)
    jobs, note = account_for(api.jobs, looked.jobs)
    return JobList(jobs, looked, note)


def look_at_job(api: Api, detail: JobDetail) -> JobAccount:
    """Where accounting tells nothing, its use is what agents measured."""
    looked = look(api.jobs, [detail])
    [job], note = account_for(api.jobs, looked.jobs)
    if note is not None:
        job["used"] = {**job["used"], **_measured(api, job)}
    return JobAccount(job, detail, looked, note, _read_script(detail))


def job_history(days: int) -> list[Record]:
    """Every job of the user's, whoever submitted it, from Slurm's accounting."""
    try:
        records = cluster().own_records(time.time() - days * _DAY)
    except NoAccounting as error:
        raise RunyardError(
            f"the history of all jobs is not to be had: {error}",
            mend="`runyard status --jobs` lists those that runyard submitted, from its own ledger",
        ) from None
    records.sort(key=lambda record: record.submitted or 0.0, reverse=True)
    return records


def job_json(job: Job, looked: Looked) -> dict[str, Any]:
    """A job with its reason in plain words, and what Slurm says of its tasks."""
    reason = cluster().read_reason(job["reason"])
    state = looked.queue.get(job["key"])
    fields = ("which", "count", "reason", "start", "end", "nodes")
    return {
        **job,
        "reason_text": None if reason is None else str(reason),
        "is_stuck": reason is not None and reason.is_stuck,
        "queue": [
            {**{name: getattr(task, name) for name in fields}, "state": task.state.name}
            for task in (state.tasks if state is not None else ())
        ],
    }


def site_command() -> str | None:
    """What the site has to show a job's efficiency, where it is there."""
    from runyard.clusters.load import load_profile
    from runyard.clusters.place import recognise, this_place

    command = load_profile(recognise(this_place()).name).accounting.efficiency_command
    return command if command and shutil.which(command.split()[0]) else None


def script_of(job: JobDetail) -> str:
    """The script, as it was submitted."""
    script = _read_script(job)
    if script is None:
        raise NotFoundError(
            f"the script of job {job['job_id']} is not there: {job['folder'] or 'no folder'}",
            mend=cluster().advice("script", job["job_id"]),
        )
    return script


def script_file(job: Job) -> Path:
    return Path(job["folder"]) / "script.sh"


def _read_script(job: Job) -> str | None:
    if not job["folder"]:
        return None
    try:
        return script_file(job).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _measured(api: Api, job: Job) -> dict[str, float]:
    """What the agents of a job measured of their programs."""
    if job["sweep"] is None:
        return {}
    from runyard.report.efficiency import use_of

    work = api.sweeps.work(job["sweep"])
    use = use_of(job, work["agents"], work["attempts"], now=time.time())
    figures = {
        "longest_seconds": use.longest,
        "memory_peak": use.memory_peak,
        "cpu_seconds": use.cpu_used,
        "cpu_seconds_held": use.cpu_held,
    }
    return {name: value for name, value in figures.items() if value is not None}
