"""End a sweep with its jobs and all that runs of it, one run, or a job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runyard.actions import naming
from runyard.actions.ending.steering import steer
from runyard.actions.events import Event, Notify, ignore
from runyard.client.api import Api
from runyard.errors import RunyardError, UsageError
from runyard.shapes.jobs import Job
from runyard.shapes.runs import Run
from runyard.shapes.sweeps import Sweep

_MANY = 10

Confirm = Callable[[str], bool]
"""Answers whether to go on."""


@dataclass(frozen=True)
class SweepCancelled(Event):
    """Told before its jobs are cancelled."""

    before: Sweep
    after: Sweep


@dataclass(frozen=True)
class RunCancelled:
    """Before and after it was asked to stop."""

    before: Run
    after: Run

    def in_words(self) -> str:
        run = self.after
        if run["stop_asked"] and run["state"] != "killed":
            return f"run {run['id']} was asked to stop; `runyard show {run['id']}` says when it has"
        if self.before["state"] == "pending":
            return f"run {run['id']} had not started, and will not"
        return f"run {run['id']} has ended already ({run['state']})"


@dataclass(frozen=True)
class JobsCancelled:
    """Of a sweep; empty where it had none."""

    jobs: list[Job]


@dataclass(frozen=True)
class JobCancelled:
    """`which` is the job's number, or one of its tasks. `job` is as it is after it; the job that
    had ended before was left alone."""

    which: str
    job: Job
    had_ended: bool = False
    is_foreign: bool = False


def cancel(
    api: Api, words: str, confirm: Confirm, notify: Notify = ignore, *, finish: bool = False
) -> JobsCancelled | JobCancelled | RunCancelled:
    """End what the words mean. `confirm` is asked before many end, or what is not runyard's.

    `finish`: trials of a sweep that run may finish, and no more begin.
    """
    named = naming.find(api, words)
    if named.sweep is not None and finish:
        notify(SweepCancelled(named.sweep, steer(api, named.sweep, "stop")))
        return JobsCancelled([])
    if finish and named.run is None:
        raise UsageError(
            "--finish is for a sweep, and this is a job",
            mend="leave it out; `runyard agents drain` lets agents finish their trials",
        )
    if named.sweep is not None:
        return _cancel_sweep(api, named.sweep, confirm, notify)
    if named.job is not None:
        return _cancel_job(api, named.job, named.task, confirm)
    if named.number is not None:
        return _cancel_foreign(named.number, named.task, confirm)
    assert named.run is not None
    return RunCancelled(named.run, api.stop_run(named.run))


def _cancel_sweep(api: Api, sweep: Sweep, confirm: Confirm, notify: Notify) -> JobsCancelled:
    jobs = [job for job in api.jobs.jobs(sweep=sweep["key"], open_only=True) if job["mine"]]
    tasks = sum(job["tasks"] for job in jobs)
    running = sweep["counts"]["running"]
    if running > _MANY or tasks > _MANY:
        more = f" and {names_of(jobs)} ({tasks} tasks)" if jobs else ""
        _ask(confirm, f"end sweep {sweep['id']} with {running} running trials{more}?")
    # First the sweep: what its agents hand back when they are ended must not be handed out again.
    notify(SweepCancelled(sweep, steer(api, sweep, "cancel")))
    if jobs:
        _end_jobs(api, jobs)
    return JobsCancelled(jobs)


def _cancel_job(api: Api, job: Job, task: str | None, confirm: Confirm) -> JobCancelled:
    which = f"{job['job_id']}_{task}" if task is not None else job["job_id"]
    if job["ended_at"] is not None:
        return JobCancelled(which, job, had_ended=True)
    if task is None and job["tasks"] > _MANY:
        _ask(confirm, f"end job {which} with its {job['tasks']} tasks?")
    [after] = _end_jobs(api, [job], which)
    return JobCancelled(which, after)


def _cancel_foreign(number: str, task: str | None, confirm: Confirm) -> JobCancelled:
    from runyard.actions.watching.foreign_jobs import foreign_job
    from runyard.schedulers.choice import cluster

    job = foreign_job(number)
    which = f"{number}_{task}" if task is not None else number
    if job["ended_at"] is not None:
        return JobCancelled(which, job, had_ended=True, is_foreign=True)
    _ask(confirm, f"job {which} was not submitted by runyard; end it?")
    cluster().cancel([which])
    return JobCancelled(which, job, is_foreign=True)


def _end_jobs(api: Api, jobs: list[Job], which: str | None = None) -> list[Job]:
    """Cancel them at Slurm, and tell the server how they stand then."""
    from runyard.launch.watching import look
    from runyard.schedulers.choice import cluster

    scheduler = cluster()
    here = scheduler.cluster_name()
    away = [job for job in jobs if job["cluster"] not in (here, "")]
    if away:
        by_hand = scheduler.advice("cancel", away[0]["job_id"])
        raise UsageError(
            f"{names_of(away)} is not on this cluster but on {away[0]['cluster']}",
            mend="log in there and type the same" + (f"; or {by_hand} there" if by_hand else ""),
        )
    try:
        scheduler.cancel([which] if which is not None else [job["job_id"] for job in jobs])
    except RunyardError as error:
        by_hand = scheduler.advice("cancel", jobs[0]["job_id"])
        error.mend = error.mend or (f"{by_hand} by hand says more" if by_hand else None)
        raise
    return list(look(api.jobs, jobs).jobs)


def _ask(confirm: Confirm, question: str) -> None:
    if not confirm(question):
        raise UsageError("nothing was cancelled", mend="--yes does it without asking")


def names_of(jobs: Sequence[Job]) -> str:
    """The numbers of the first few."""
    numbers = ", ".join(job["job_id"] for job in jobs[:3])
    more = f" and {len(jobs) - 3} more" if len(jobs) > 3 else ""
    return f"job{'s' if len(jobs) > 1 else ''} {numbers}{more}"
