"""A job of the user's own that runyard did not submit, as far as Slurm tells of it."""

from __future__ import annotations

import time
from collections import Counter

from runyard.errors import NotFoundError
from runyard.launch.watching import ANSWER_SECONDS, Looked
from runyard.schedulers.choice import cluster
from runyard.schedulers.errors import NoAccounting, SchedulerError, SchedulerMissing
from runyard.schedulers.jobs import JobState, Record, used
from runyard.schedulers.states import state_named
from runyard.shapes.jobs import Job


def foreign_job(number: str) -> Job:
    """The job of this number; NotFoundError where Slurm does not know it as ours."""
    return look_at(number).jobs[0]


def look_at(number: str) -> Looked:
    """The same, with what the queue says of it now."""
    try:
        state = cluster().poll([number], patience=0.0, seconds=ANSWER_SECONDS)[number]
    except SchedulerMissing:
        raise _unknown(number, "runyard has submitted none, and there is no Slurm here") from None
    known = [] if state.tasks else _accounted(number)
    if not state.tasks and not known:
        raise _unknown(number, "neither runyard nor Slurm knows it as one of yours")
    job = _as_job(number, state, known)
    return Looked([job], {job["key"]: state})


def _accounted(number: str) -> list[Record]:
    try:
        return cluster().records([number], seconds=ANSWER_SECONDS).get(number, [])
    except (NoAccounting, SchedulerError):
        return []


def _unknown(number: str, why: str) -> NotFoundError:
    return NotFoundError(
        f"there is no job {number}: {why}",
        mend="`runyard status --jobs` lists those that it submitted",
    )


def _as_job(number: str, state: JobState, known: list[Record]) -> Job:
    states = state.states if state.tasks else dict(Counter(record.state.name for record in known))
    is_open = any(state_named(name).is_open for name in states)
    starts = [task.start for task in state.tasks if task.start and task.state.phase != "waiting"]
    starts += [record.start for record in known if record.start is not None]
    ends = [task.end for task in state.tasks if task.end is not None]
    ends += [record.end for record in known if record.end is not None]
    submitted = [record.submitted for record in known if record.submitted is not None]
    return Job(
        key=0,
        cluster=cluster().cluster_name() or "",
        job_id=number,
        user="",
        mine=False,
        sweep=None,
        sweep_id=None,
        sweep_name=None,
        entity=None,
        project=None,
        kind="not runyard's",
        name=known[0].name if known else "",
        array=None,
        tasks=sum(states.values()),
        folder="",
        log_pattern=None,
        asked={},
        snapshot=None,
        submitted_at=min([*submitted, *starts, time.time()]),
        polled_at=time.time(),
        states=states,
        reason=state.reason,
        starts_at=state.start,
        started_at=min(starts, default=None),
        ended_at=None if is_open else max(ends, default=time.time()),
        used=used(known),
        wish=None,
        failed=0,
    )
