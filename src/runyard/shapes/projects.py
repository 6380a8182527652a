"""Projects, their runs as columns, reports and news, as the server's API answers."""

from __future__ import annotations

from typing import Any, TypedDict


class Project(TypedDict):
    """A project, and what is in it."""

    entity: str
    name: str
    created_at: float
    last_at: float
    sweeps: int
    reports: int
    runs: int
    running: int
    counts: dict[str, int]
    # How many runs began on each of the last days; a metric of a late run, thinned out.
    activity: list[int]
    metric: str | None
    spark: list[Any]


class Projects(TypedDict):
    revision: int
    projects: list[Project]


class FieldName(TypedDict):
    """A key of configs or summaries; `varies` between the runs."""

    name: str
    kind: str
    varies: bool


class MediaName(TypedDict):
    name: str
    type: str


class DefinedMetric(TypedDict):
    """What runs said of a metric by `define_metric`."""

    step: str | None
    goal: str | None
    summary: list[str]
    hidden: bool


class FieldNames(TypedDict):
    revision: int
    config: list[FieldName]
    summary: list[FieldName]
    metrics: list[str]
    defined: dict[str, DefinedMetric]
    # By metric: what the sweeps of the project search for.
    ranked: dict[str, str]
    events: list[str]
    media: list[MediaName]


class RunColumns(TypedDict):
    """Where `whole` is false, only the runs that changed. `total`: with those of other slices.

    `best`: by metric, the best value that a trial has logged, which its sweep ranks by.
    """

    revision: int
    whole: bool
    total: int
    columns: dict[str, list[Any]]
    config: dict[str, list[Any]]
    summary: dict[str, list[Any]]
    best: dict[str, list[Any]]
    deleted: list[int]


class RunGroup(TypedDict):
    label: str
    values: dict[str, Any]
    runs: list[int]


class ReportHead(TypedDict):
    id: str
    title: str
    notes: str
    entity: str
    project: str
    user: str
    revision: int
    created_at: float
    updated_at: float


class Report(ReportHead):
    view: dict[str, Any]


class _News(TypedDict):
    revision: int
    whole: bool
    runs: list[int]
    history: list[int]
    console: list[int]
    files: list[int]
    deleted: list[int]
    sweeps: list[int]
    agents: bool
    jobs: bool
    projects: bool
    reports: bool


class News(_News, total=False):
    """Keys of what changed after a revision; `whole`: ask for everything anew. `watch`: for which
    of those that share a stream."""

    watch: str
