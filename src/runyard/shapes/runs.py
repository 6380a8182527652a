"""Runs, and what belongs to one, as the server's API answers."""

from __future__ import annotations

from typing import Any, TypedDict


class Place(TypedDict):
    """A run or a sweep, and where it is."""

    key: int
    id: str
    name: str
    entity: str
    project: str


class Run(Place):
    """One run as the server tells it. `key` addresses it for good; a project may change."""

    state: str
    exit_code: int | None
    config: dict[str, Any]
    summary: dict[str, Any]
    tags: list[str]
    notes: str | None
    group: str | None
    job_type: str | None
    host: str | None
    program: str | None
    command: list[str] | None
    folder: str | None
    created_at: float
    started_at: float | None
    ended_at: float | None
    heartbeat_at: float | None
    steps: int
    stop_asked: bool


class TrashedRun(Place):
    """`gone_at`: when it is deleted for good."""

    state: str
    deleted_at: float
    deleted_by: str
    gone_at: float


class ChangedRuns(TypedDict):
    """Keys and names of the runs that were changed at once."""

    runs: list[int]
    names: list[str]


class Execution(TypedDict):
    """One execution; `usage` is what its agent measured."""

    number: int
    host: str
    started_at: float
    ended_at: float | None
    exit_code: int | None
    cause: str | None
    usage: dict[str, Any] | None


class Attempt(Execution):
    """One execution of a run that runyard itself started."""

    pid: int | None
    console_bytes: int
    job: str | None
    node: str | None


class Alert(TypedDict):
    """What a program wanted somebody to know."""

    title: str
    text: str
    level: str
    raised_at: float


class ArchiveHead(TypedDict):
    """Rows that a rewind, or a new start under the same id, took out of a run."""

    number: int
    reason: str
    made_at: float


class Archive(ArchiveHead):
    steps: int


class ArchiveDetail(ArchiveHead):
    """With the config and the summary of that time."""

    config: dict[str, Any]
    summary: dict[str, Any]


class TrialPlace(TypedDict):
    """Which trial a run is: its sweep's key, and its number there; `values` are its settings."""

    sweep: int
    number: int
    values: dict[str, Any]


class RunDetail(Run):
    """`job` and `node`, of a trial: of the agent that had it last; `job_key` where we know it."""

    metrics: list[str]
    attempts: list[Attempt]
    files: list[str]
    alerts: list[Alert]
    archives: list[Archive]
    file_bytes: int
    trial: TrialPlace | None
    sweep: Place | None
    job: str | None
    job_key: int | None
    node: str | None


class Series(TypedDict):
    """One metric, thinned out for drawing; `count` is how many points it really has."""

    key: str
    count: int
    steps: list[float]
    values: list[float | None]
    last: Any
    minimum: float | None
    maximum: float | None


class Console(TypedDict):
    text: str
    next: int
    ended: bool


class RunFile(TypedDict):
    name: str
    size: int


class Record(TypedDict):
    """A run as its client sent it; config and summary are JSON texts."""

    id: str
    name: str
    entity: str
    project: str
    state: str
    exit_code: int | None
    config: str
    summary: str
    tags: list[str]
    notes: str | None
    group: str | None
    job_type: str | None
    host: str | None
    program: str | None
    commit_hash: str | None
    repo: str | None
    lines: dict[str, int]
    files: list[RunFile]


class Lines(TypedDict):
    start: int
    lines: list[str]


class Received(TypedDict):
    """What became of console bytes; and whether the program is to end."""

    stored: int
    stop: bool


class _NewRun(TypedDict):
    id: str
    project: str
    command: list[str]


class NewRun(_NewRun, total=False):
    """What `runyard run` knows of a run before its program starts."""

    name: str | None
    entity: str | None
    # Whether the user said where it is to be; else a program's earlier choice counts.
    is_place_named: bool
    folder: str
    host: str
    tags: list[str]
    notes: str | None
    group: str | None


class WriterTimes(TypedDict):
    """Of one kind of change, in seconds; `longest_wait` is before its turn."""

    count: int
    seconds: float
    longest: float
    longest_cpu: float
    longest_wait: float


class RunCounts(TypedDict):
    runs: int
    running: int


class Health(RunCounts, total=False):
    """The rest is for the admin."""

    version: str
    pid: int
    hostname: str
    started_at: float
    home: str
    database_bytes: int
    # Kinds of changes by name, the one with the longest change first.
    writer: dict[str, WriterTimes]
    note: str | None


class Proof(TypedDict):
    """`proof` is of the server's address, `proof_here` of its port and its machine."""

    proof: str
    proof_here: str


class ArtifactRecord(TypedDict):
    """A version; `metadata` is a text of JSON, `made_by` the id of a run."""

    key: int
    entity: str
    project: str
    collection: str
    type: str
    digest: str
    version: int
    description: str | None
    metadata: str | None
    history_step: int | None
    ttl: int | None
    size: int
    tags: list[str]
    aliases: list[str]
    made_by: str | None
    used_by: list[Place]


class RunArtifacts(TypedDict):
    logged: list[ArtifactRecord]
    used: list[ArtifactRecord]
