"""Slurm's jobs, as the server remembers them, typed.

The server never asks Slurm: commands on the login node do, and tell it. Every call may be repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from runyard.client.http import Connection


class _NewJob(TypedDict):
    cluster: str
    job_id: str
    kind: str
    name: str
    submitted_at: float


class NewJob(_NewJob, total=False):
    """What was submitted. `kind`: agents, server, shell, build, gauge; `sweep` is a sweep's key.

    `submitted_at` makes a repeated call the same call. `asked` are the resources of each task.
    """

    sweep: int | None
    array: str | None
    tasks: int
    folder: str
    log_pattern: str | None
    asked: Mapping[str, Any]
    snapshot: str | None
    script: str
    environment: Mapping[str, Any]


class Job(TypedDict):
    """One job as the server tells it; an array is one job with many tasks.

    `states` counts tasks by state (`schedulers/slurm/states.py`); `starts_at` is Slurm's guess for
    those that wait. `polled_at` says how old all of it is; null: nobody has asked Slurm yet.
    `failed`: of its trials, how many.
    """

    key: int
    cluster: str
    job_id: str
    user: str
    mine: bool
    sweep: int | None
    sweep_id: str | None
    sweep_name: str | None
    entity: str | None
    project: str | None
    kind: str
    name: str
    array: str | None
    tasks: int
    folder: str
    log_pattern: str | None
    asked: dict[str, Any]
    snapshot: str | None
    submitted_at: float
    polled_at: float | None
    states: dict[str, int]
    reason: str | None
    starts_at: float | None
    started_at: float | None
    ended_at: float | None
    used: dict[str, Any]
    wish: str | None
    failed: int


class JobAgent(TypedDict):
    """An agent that is or was in the job; `job` names its task: 123_4."""

    key: int
    job: str
    node: str | None
    host: str
    pid: int | None
    slots: int
    running: int
    created_at: float
    heard_at: float
    left_at: float | None
    why: str | None


class JobDetail(Job):
    """`script` as it was submitted, to its owner alone; null where it was not recorded."""

    agents: list[JobAgent]
    script: str | None
    environment: dict[str, Any]


class _JobNews(TypedDict):
    polled_at: float
    states: Mapping[str, int]


class JobNews(_JobNews, total=False):
    """What Slurm said of a job. `ended_at` is null while a task waits or runs."""

    reason: str | None
    starts_at: float | None
    started_at: float | None
    ended_at: float | None
    used: Mapping[str, Any]


class JobsApi:
    """What the server remembers of jobs."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def record(self, new: NewJob) -> Job:
        """Tell of a job that was submitted."""
        made: Job = self._connection.post("/api/jobs", new)
        return made

    def jobs(
        self, *, sweep: int | None = None, open_only: bool = False, limit: int | None = None
    ) -> list[Job]:
        """The newest first; of one sweep, by its key; `open_only`: those not known to be over."""
        found: list[Job] = self._connection.get(
            "/api/jobs", sweep=sweep, open=1 if open_only else None, limit=limit
        )
        return found

    def job(self, words: str) -> JobDetail:
        """By Slurm's number, with or without a task (123, 123_4), by name, or by a part of it."""
        found: JobDetail = self._connection.get("/api/job", name=words)
        return found

    def by_key(self, key: int) -> JobDetail:
        found: JobDetail = self._connection.get(f"/api/jobs/{key}")
        return found

    def wish(self, key: int, wish: Literal["cancel"] | None) -> None:
        """Have a job cancelled by the next command on its login node, or take that back."""
        self._connection.post(f"/api/jobs/{key}/wish", {"wish": wish})

    def update(self, key: int, news: JobNews) -> None:
        """Tell what Slurm said; words older than what the server knows change nothing."""
        self.update_all({key: news})

    def update_all(self, news: Mapping[int, JobNews]) -> None:
        """The same for many at once, in one request."""
        if news:
            told = [{"key": key, **one} for key, one in news.items()]
            self._connection.post("/api/jobs/news", {"news": told})
