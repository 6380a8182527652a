"""Jobs: what is asked for, what a scheduler answers, its queue now, and its records afterwards."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from runyard.schedulers.errors import SchedulerError
from runyard.schedulers.states import UNKNOWN, State

Option = tuple[str, str | None]


# As in 5-80:2, a part of 123_[1,5-80:2%8].
# Schedulers count tasks in 32 bits.
_SPAN = re.compile(r"(\d{1,10})(?:-(\d{1,10}))?(?::(\d{1,10}))?")


@dataclass(frozen=True)
class Header:
    """Options of a job by the scheduler's names, without the array's, which come with each part."""

    options: tuple[Option, ...]


@dataclass(frozen=True)
class Batch:
    """A job to be sent."""

    name: str
    text: str
    """The script, with the scheduler's header."""
    key: str
    """Names this job among all that were ever sent; the same key is the same job."""
    after: str | None = None
    """The job that has to end first, however it ends."""
    minutes: int | None = None
    """With `after`: begin so long after that job began, where the scheduler can do that."""
    folder: Path | None = None
    """Where it runs, which not every line of a script can hold."""
    node: str | None = None
    """The one node that it is for."""
    may_be_there: bool = False
    """An earlier command may have sent it, and not have heard of it."""


@dataclass(frozen=True)
class Reply:
    """What a scheduler says to a job that was sent.

    *taken*: `job_id` is its number. *full*: a limit on the number of jobs keeps it out for now.
    *refused*: it will never be taken as it is. *unknown*: the answer was lost and the job may have
    been taken; the same key must be sent with `may_be_there` the next time.
    """

    outcome: Literal["taken", "full", "refused", "unknown"]
    job_id: str = ""
    words: str = ""
    """The scheduler's own, in one line."""
    error: SchedulerError | None = None
    """What to raise where it was not taken, with what helps."""
    search: str = ""
    """How a person finds out later whether an unknown one was taken."""


@dataclass(frozen=True)
class Tasks:
    """Tasks of a job that are alike: one that runs, or a whole range that waits."""

    which: str
    """In the scheduler's words: 123_4, 123_[5-80%8] or 123."""
    count: int
    state: State
    reason: str | None
    start: float | None
    """When it started or, as the scheduler guesses, will start."""
    end: float | None
    """When it ended, or will have to."""
    nodes: str | None

    def holds(self, task: str) -> bool:
        """Whether a task of the array, by its number, is among them."""
        name, _, ranges = self.which.partition("[")
        if not ranges:
            return name.partition("_")[2] == task
        return any(int(task) in numbers for numbers in read_ranges(ranges))


def read_ranges(text: str) -> Iterator[range]:
    """The tasks of an array by their numbers: 1-80%8, [3,5,7-9], 0-30:10."""
    for piece in text.strip("[]").partition("%")[0].split(","):
        match = _SPAN.fullmatch(piece.strip())
        # "1-5,..." is how a release that knows no other way cuts a long list.
        if match is not None:
            first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
            yield range(first, last + 1, max(1, step))


@dataclass(frozen=True)
class JobState:
    """What the queue says of a job now; a job it does not know (any more) is UNKNOWN."""

    job_id: str
    tasks: tuple[Tasks, ...] = field(default=())

    @property
    def states(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for task in self.tasks:
            counts[task.state.name] = counts.get(task.state.name, 0) + task.count
        return counts or {UNKNOWN.name: 1}

    @property
    def is_open(self) -> bool:
        """Whether any of it may still come to something; not of a job that is forgotten."""
        return any(tasks.state.is_open for tasks in self.tasks)

    @property
    def reason(self) -> str | None:
        """Why what waits is waiting."""
        waiting = (task.reason for task in self.tasks if task.state.phase == "waiting")
        return next((reason for reason in waiting if reason), None)

    @property
    def start(self) -> float | None:
        """When the first that waits is expected to start."""
        waiting = [task for task in self.tasks if task.state.phase == "waiting"]
        return min((task.start for task in waiting if task.start is not None), default=None)


@dataclass(frozen=True)
class Record:
    """One task of a job, or a job that is no array, as accounting has it."""

    which: str
    """123, or 123_4 in an array; 123_[5-9] are tasks that never started."""
    name: str
    account: str
    state: State
    exit_code: str
    partition: str
    nodes: str | None
    submitted: float | None
    start: float | None
    end: float | None
    seconds: float
    limit: float | None
    """What time was asked for, in seconds."""
    cpus: int
    cpu_seconds: float
    memory_asked: int | None
    """Bytes, of all its nodes."""
    memory_peak: int | None
    """Bytes, of the step that used most."""
    gpus: int

    @property
    def job_id(self) -> str:
        return self.which.partition("_")[0]


@dataclass(frozen=True)
class RunningTask:
    """A task that runs: what it has, and what it used so far; None where nobody says."""

    which: str
    """123, or 123_4 in an array."""
    name: str
    nodes: str
    cpus: int
    memory: int | None
    """What it may use, in bytes; of each node or CPU, as it was asked."""
    gpus: str | None
    started: float | None
    cpu_seconds: float | None = None
    memory_peak: int | None = None


@dataclass(frozen=True)
class Reason:
    """Why a job waits. `says` why; `mend` is what to do, where there is more than to wait."""

    word: str
    says: str
    mend: str = ""

    @property
    def is_stuck(self) -> bool:
        """Whether it will not start by waiting."""
        return bool(self.mend)

    def __str__(self) -> str:
        return f"{self.word}: {self.says}" + (f"; {self.mend}" if self.mend else "")


def used(of_job: Sequence[Record]) -> dict[str, float]:
    """What a job's tasks used, against what they had: the ledger's `used`."""
    ran = [record for record in of_job if record.start is not None]
    if not ran:
        return {}
    peaks = [record.memory_peak for record in ran if record.memory_peak is not None]
    requested = [record.memory_asked for record in ran if record.memory_asked is not None]
    limits = [record.limit for record in ran if record.limit is not None]
    used = {
        "tasks": len(ran),
        "seconds": sum(record.seconds for record in ran),
        "longest_seconds": max((record.seconds for record in ran), default=0.0),
        "limit_seconds": max(limits, default=None),
        "cpu_seconds": sum(record.cpu_seconds for record in ran),
        "cpu_seconds_held": sum(record.cpus * record.seconds for record in ran),
        "gpu_seconds_held": sum(record.gpus * record.seconds for record in ran),
        "memory_peak": max(peaks, default=None),
        "memory_asked": max(requested, default=None),
    }
    return {name: value for name, value in used.items() if value is not None}
