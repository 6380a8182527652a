"""How our jobs stand: the scheduler is asked once for all of them, and the server is told."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runyard.client.jobs import JobsApi
from runyard.errors import RunyardError
from runyard.schedulers.choice import cluster
from runyard.schedulers.errors import NoAccounting, SchedulerError
from runyard.schedulers.jobs import JobState, Record, used
from runyard.schedulers.states import state_named
from runyard.shapes.jobs import Job, JobDetail, JobNews

if TYPE_CHECKING:
    from runyard.schedulers.protocol import Scheduler

# A person waits for it: a controller that takes longer is said to hang, and what is known is shown.
ANSWER_SECONDS = float(os.environ.get("RUNYARD_SCHEDULER_SECONDS") or 10.0)
_ACCOUNTED_AFTER = 60.0


@dataclass(frozen=True)
class Looked:
    """Jobs as they are known now; `queue` has, by key, what the queue said of them now.

    `trouble` says why it could not be asked: then they are as old as their `polled_at`.
    """

    jobs: list[Job]
    queue: Mapping[int, JobState] = field(default_factory=dict)
    trouble: str | None = None


def look(api: JobsApi, jobs: Sequence[Job], *, environ: Mapping[str, str] | None = None) -> Looked:
    """Ask about those that are not known to be over, and tell the server what it says.

    Those that somebody cancelled on the page are cancelled first.
    """
    # The queue is asked for one's own: of somebody else's jobs it would seem to know nothing.
    waiting = [job for job in jobs if job["ended_at"] is None and job["mine"]]
    if not waiting:
        return Looked(list(jobs))
    scheduler = cluster(environ)
    here = scheduler.cluster_name()
    here_waiting = [job for job in waiting if job["cluster"] in (here, "")]
    if not here_waiting:
        where = ", ".join(sorted({job["cluster"] for job in waiting}))
        return Looked(list(jobs), trouble=f"this machine does not belong to {where}")
    try:
        # What the page was asked for, it cannot do itself.
        scheduler.cancel(job["job_id"] for job in here_waiting if job["wish"] == "cancel")
        states = scheduler.poll(
            [job["job_id"] for job in here_waiting], patience=0.0, seconds=ANSWER_SECONDS
        )
    except SchedulerError as error:
        words = f" ({error.said})" if error.said else ""
        return Looked(list(jobs), trouble=f"{error.what}{words}")
    now = time.time()
    ended = _accounted(here_waiting, states, scheduler)
    news: dict[int, JobNews] = {}
    for job in here_waiting:
        state, known = states[job["job_id"]], ended.get(job["job_id"], [])
        detail = api.by_key(job["key"]) if not state.tasks and not known else None
        news[job["key"]] = news_of(job, state, known, now, detail, scheduler)
    # For the others who look; where the server cannot take it, we can still show it.
    with contextlib.suppress(RunyardError):
        api.update_all(news)
    return Looked(
        [_with_news(job, news.get(job["key"])) for job in jobs],
        {job["key"]: states[job["job_id"]] for job in here_waiting},
    )


def account_for(
    api: JobsApi, jobs: Sequence[Job], *, environ: Mapping[str, str] | None = None
) -> tuple[list[Job], str | None]:
    """What accounting knows of the use of jobs that are over and whose use is not known yet: asked
    for all of them at once, and told to the server. With it, why there is none, if so."""
    scheduler = cluster(environ)
    here = scheduler.cluster_name()
    unrecorded = [
        job
        for job in jobs
        if job["ended_at"] is not None
        and job["mine"]
        and job["cluster"] in (here, "")
        and job["started_at"] is not None
        and not _is_accounted(job)
    ]
    if not unrecorded:
        return list(jobs), None
    try:
        records = scheduler.records([job["job_id"] for job in unrecorded], seconds=ANSWER_SECONDS)
    except NoAccounting as error:
        return list(jobs), str(error)
    except SchedulerError as error:
        return list(jobs), error.what
    news: dict[int, JobNews] = {}
    for job in unrecorded:
        known = used(records.get(job["job_id"], ()))
        if known:
            news[job["key"]] = {
                "polled_at": time.time(),
                "states": job["states"],
                "started_at": job["started_at"],
                "ended_at": job["ended_at"],
                "used": {**known, "accounted_at": time.time()},
            }
    with contextlib.suppress(RunyardError):
        api.update_all(news)
    return [_with_news(job, news.get(job["key"])) for job in jobs], None


def _is_accounted(job: Job) -> bool:
    """A step's last figures may come to accounting a little after its end."""
    asked_at = job["used"].get("accounted_at", 0.0)
    return "memory_peak" in job["used"] or asked_at > (job["ended_at"] or 0.0) + _ACCOUNTED_AFTER


def news_of(
    job: Job,
    state: JobState,
    known: Sequence[Record] = (),
    now: float = 0.0,
    detail: JobDetail | None = None,
    scheduler: Scheduler | None = None,
) -> JobNews:
    """What is to be remembered of a job: what the queue says, and of tasks that have left it what
    accounting says, what was known before, or what its agents told."""
    reason = (scheduler or cluster()).read_reason(state.reason)
    counts = dict(state.states) if state.tasks else {}
    missing = _count_tasks(job) - sum(counts.values())
    for name, count in _left(job, known, counts, detail).items():
        counts[name] = counts.get(name, 0) + min(count, max(0, missing))
        missing -= count
    if missing > 0:
        counts["UNKNOWN"] = counts.get("UNKNOWN", 0) + missing
    counts = {name: count for name, count in counts.items() if count}
    began = [task.start for task in state.tasks if task.start and task.state.phase != "waiting"]
    began += [record.start for record in known if record.start is not None]
    if job["started_at"] is not None:
        began.append(job["started_at"])
    is_open = any(state_named(name).is_open for name in counts)
    return {
        "polled_at": now,
        "states": counts,
        # In plain words: others who look have nothing but what is told here.
        "reason": None if reason is None else str(reason),
        "starts_at": state.start,
        "started_at": min(began, default=None),
        "ended_at": None if is_open else _end(job, state, known, now, detail),
        "used": _used(known) or ({} if is_open else _seen(state)),
    }


def _used(known: Sequence[Record]) -> dict[str, float]:
    return used(known) if known else {}


def _accounted(
    jobs: Sequence[Job], states: Mapping[str, JobState], scheduler: Scheduler
) -> dict[str, list[Record]]:
    """What accounting has of jobs that have left the queue, wholly or in part."""
    gone = [job["job_id"] for job in jobs if _has_lost_tasks(job, states[job["job_id"]])]
    if not gone:
        return {}
    try:
        return scheduler.records(gone, seconds=ANSWER_SECONDS)
    except (NoAccounting, SchedulerError):
        return {}


def _has_lost_tasks(job: Job, state: JobState) -> bool:
    ended = sum(n for name, n in job["states"].items() if not state_named(name).is_open)
    present = state.states if state.tasks else {}
    shown = sum(present.values())
    still = sum(n for name, n in present.items() if not state_named(name).is_open)
    return _count_tasks(job) > shown + max(0, ended - still) or not state.tasks


def _count_tasks(job: Job) -> int:
    """Only an array has several; older records say how many agents a job over nodes has."""
    return 1 if job["array"] is None else job["tasks"]


def _left(
    job: Job, known: Sequence[Record], counts: Mapping[str, int], detail: JobDetail | None
) -> dict[str, int]:
    """How the tasks ended that the queue does not show any more."""
    ended: dict[str, int] = {}
    for record in known:
        if record.state.phase == "ended":
            ended[record.state.name] = ended.get(record.state.name, 0) + 1
    if not ended:
        ended = {name: n for name, n in job["states"].items() if state_named(name).phase == "ended"}
    if not ended and detail is not None:
        # An agent that said goodbye ended as it should; of one that did not, nobody knows.
        agents_left = sum(agent["left_at"] is not None for agent in detail["agents"])
        ended = {"COMPLETED": agents_left} if agents_left else {}
    return {name: max(0, n - counts.get(name, 0)) for name, n in ended.items()}


def _end(
    job: Job,
    state: JobState,
    known: Sequence[Record],
    now: float,
    detail: JobDetail | None,
) -> float:
    ends = [task.end for task in state.tasks if task.end is not None]
    ends += [record.end for record in known if record.end is not None]
    if not ends and detail is not None:
        ends = [agent["left_at"] or agent["heard_at"] for agent in detail["agents"]]
    return max(ends, default=job["polled_at"] or now)


def _seen(state: JobState) -> dict[str, float]:
    """What the queue alone tells of how long tasks ran."""
    ran = [task.end - task.start for task in state.tasks if task.start and task.end]
    return {"tasks": len(ran), "seconds": sum(ran), "longest_seconds": max(ran)} if ran else {}


def _with_news(job: Job, news: JobNews | None) -> Job:
    if news is None:
        return job
    changed: Job = {**job, **news, "used": {**job["used"], **news.get("used", {})}}  # type: ignore[typeddict-item]
    return changed
