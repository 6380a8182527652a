"""Jobs, and what experiments need, as the server's API answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict


class _NewJob(TypedDict):
    job_id: str
    kind: str


class NewJob(_NewJob, total=False):
    """What was submitted. `kind`: agents, server, shell, build, gauge; `sweep` is a sweep's key.

    `submitted_at` makes a repeated call the same call. `asked` are the resources of each task.
    """

    cluster: str
    name: str
    submitted_at: float
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
    packing: str | None
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


class NewsOfJob(JobNews):
    """`key` is the job's."""

    key: int


class LogPiece(TypedDict):
    """What one task printed; `cut`: what was before it is left out, or is gone."""

    task: str
    text: str
    cut: bool


class JobLog(TypedDict):
    """`after`: what to send the next time; `unread`: why there is nothing."""

    tasks: list[str]
    pieces: list[LogPiece]
    after: dict[str, int]
    more: bool
    hidden: int
    unread: str | None
    ended: bool


class Retried(TypedDict):
    """How many trials wait again, in which sweep, and how many agents are there to take them."""

    retried: int
    sweep: str
    agents: int


class KeptFigures(TypedDict):
    """One measurement."""

    kind: str
    hardware: str
    user: str
    made_at: float
    figures: dict[str, Any]


class Truth(TypedDict):
    """What the trials of a sweep that finished took: means, the most of any, and its least time."""

    trials: int
    seconds: float
    most: float
    least: float
    memory_peak: float | None
    vram_peak: float | None
    cpus: float | None


class PastSweep(TypedDict):
    id: str
    name: str
    created_at: float
    estimate: dict[str, Any] | None
    truth: Truth


class Known(TypedDict):
    """The newest first."""

    figures: list[KeptFigures]
    sweeps: list[PastSweep]


class Expected(TypedDict):
    kind: str
    estimate: dict[str, Any] | None
    truth: Truth | None
