"""What a scheduler must be able to do, and what it must guarantee.

An implementation is one package beside this module, with two parts:

- `scheduler.py` with a class as below, and a row in the table of `choice`.
- `inside.py` with a class `Job`, a `JobEnvironment` for processes inside its jobs, and a row in the
  table of `schedulers/inside.py`. It imports the standard library alone, and at its top nothing
  that is slow to load: every agent loads it.

`conformance` holds both to what is said here. Whoever uses a scheduler gets it from `choice`, or
the job from `inside.this_job`, and knows none of its commands, options, states or variables.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from runyard.schedulers.errors import NoAccounting, SchedulerError, SchedulerMissing
from runyard.schedulers.jobs import Batch, Header, JobState, Reason, Record, Reply, RunningTask
from runyard.schedulers.partitions import Partition

if TYPE_CHECKING:
    from runyard.clusters.asking import Ask
    from runyard.config.request import Request
    from runyard.schedulers.doctor import Doctor
    from runyard.schedulers.header_request import HeaderRequest, ScriptPlace
    from runyard.schedulers.script_words import ScriptWords

# How long a scheduler that does not answer is asked again, and how long one question may take.
PATIENCE = 120.0
# Whoever waits for jobs asks the scheduler no more often: hundreds may wait at one controller.
POLL_SECONDS = 15.0

Notice = Callable[[str], None]
Sleep = Callable[[float], None]


class Scheduler(ABC):
    """Made for one environment, whose variables say which cluster is meant.

    Methods may be called from any process of the user's, on any machine of the cluster, and keep
    nothing in memory between calls. Where the scheduler refuses or stays silent they raise
    SchedulerError, and SchedulerMissing where its commands are not installed. What is not abstract
    is optional: a scheduler that leaves it out says so in one sentence.
    """

    name: ClassVar[str]
    """What `--on` calls it."""
    title: ClassVar[str]
    """What people call it."""
    has_queue: ClassVar[bool]
    """Whether jobs wait for nodes and outlive the command that sent them. Where not, commands work
    in the foreground."""
    by_hand: ClassVar[Mapping[str, str]] = {}
    """What a person types without runyard to `cancel` a job, to see its `script`, or to find its
    `log`: sentences with {job} for its number."""

    local_folder: ClassVar[str] = "${TMPDIR}"
    """What a program writes for its job's folder on the node's own disk."""

    @abstractmethod
    def is_here(self) -> bool:
        """Whether jobs can be sent from this machine. Never raises."""

    @abstractmethod
    def demand(self) -> None:
        """SchedulerMissing where the commands that send jobs are not installed."""

    def is_installed(self) -> bool:
        try:
            self.demand()
        except SchedulerMissing:
            return False
        return True

    @abstractmethod
    def cluster_name(self) -> str | None:
        """What the scheduler calls its cluster: job numbers are unique within it. Never raises."""

    @property
    def words(self) -> ScriptWords:
        """Its variables and commands in a job's script."""
        raise self.lacks("runs no agents in jobs")

    def header(self, wanted: HeaderRequest) -> Header:
        """What a job asks for; ConfigError where the scheduler cannot give it."""
        raise self.lacks("runs no agents in jobs")

    def header_lines(self, header: Header, place: ScriptPlace) -> list[str]:
        """The header as lines of a script."""
        raise self.lacks("runs no agents in jobs")

    def describe(self, header: Header) -> str:
        """What a job asks for as its commands take it, in a line and without the job's name."""
        raise self.lacks("runs no agents in jobs")

    def renumber(self, text: str, tasks: int) -> str:
        """A script whose array has another number of tasks; one that is no array as it is."""
        raise self.lacks("runs no agents in jobs")

    @abstractmethod
    def submit(
        self, batch: Batch, *, notice: Notice | None = None, sleep: Sleep = time.sleep
    ) -> Reply:
        """Send a job once, although answers may be lost.

        A key that was taken is never taken a second time where the batch says that an earlier
        command may have sent it. The job inherits the shell's variables, but none of the
        scheduler's own that would overrule the script, and no key of W&B's.
        """

    @abstractmethod
    def try_out(self, batch: Batch) -> Reply:
        """What would be said to this job; nothing is sent."""

    @abstractmethod
    def poll(
        self, ids: Iterable[str], *, patience: float = PATIENCE, seconds: float = PATIENCE
    ) -> dict[str, JobState]:
        """How these jobs of the user's own stand, by one question for all of them.

        Every id that was asked for is in the answer; one that the queue does not know (any more)
        has no tasks. A state that is new to us is UNKNOWN and no error.
        """

    @abstractmethod
    def cancel(self, ids: Iterable[str], *, only_waiting: bool = False) -> None:
        """Cancel jobs or tasks of arrays (ID_TASK); what has ended or is unknown is no error."""

    @abstractmethod
    def records(self, ids: Iterable[str], *, seconds: float = 30.0) -> dict[str, list[Record]]:
        """What is known of jobs that have left the queue, by job; jobs without a record are left
        out. NoAccounting where the site keeps none."""

    @abstractmethod
    def partitions(self) -> list[Partition]:
        """What the cluster has, the default first."""

    @abstractmethod
    def array_size(self) -> int | None:
        """The first index that a task of an array cannot have; None where it does not say."""

    def command(self, batch: Batch) -> list[str]:
        """What is typed to send this job, with the script on its standard input."""
        raise self.lacks("shows no command that sends a job")

    def hold(self, ids: Iterable[str]) -> None:
        """Keep what waits from starting, until `release`."""
        raise self.lacks("holds no jobs")

    def release(self, ids: Iterable[str]) -> None:
        raise self.lacks("holds no jobs")

    def read_reason(self, word: str | None) -> Reason | None:
        """Why a job waits, in plain words: of a reason as `poll` has it, or as its text was kept;
        None where there is none."""
        return None if not word else Reason(word, f"{self.title} says no more than that")

    def own_records(self, since: float, *, seconds: float = 30.0) -> list[Record]:
        """All of the user's jobs since a time, whoever sent them; NoAccounting where none are to be
        had."""
        raise NoAccounting(f"{self.title} does not list a user's jobs of the past")

    def running_tasks(self, only: Iterable[str] | None = None) -> list[RunningTask]:
        """The user's tasks that run and what they use; `only`: of these jobs."""
        raise self.lacks("does not tell what running jobs use")

    def fair_shares(self) -> dict[str, float]:
        """By account; empty where the site does not reckon with them."""
        return {}

    def nodes_of(self, partition: str | None) -> tuple[list[str], list[str]]:
        """The nodes of a partition (the usual one, where none is named), and those that are
        away."""
        raise self.lacks("does not list the nodes of a partition")

    def with_shell_options(self, request: Request) -> Request:
        """The request, with what the shell's variables ask of the scheduler where nobody else
        does."""
        return request

    def mind_maintenance(self, request: Request) -> tuple[Request, tuple[str, ...]]:
        """The request as it fits before the next maintenance, as far as it can, and what is to be
        said; unchanged where none is known."""
        return request, ()

    def doctor(self, ask: Ask | None = None, user: str | None = None) -> Doctor | None:
        """Who examines it for `runyard doctor`, or what somebody else's answered: `ask` does so,
        and `user` is who had asked."""
        return None

    def allocation_words(self, header: Header) -> list[str]:
        """The command that gives a person an allocation, and returns when it is there."""
        raise self.lacks("gives no allocation to work in by hand")

    def allocate(self, header: Header) -> str:
        """Wait for the allocation; the job's number."""
        raise self.lacks("gives no allocation to work in by hand")

    def entry_words(
        self, job: str, words: Sequence[str], cpus: int | None = None, *, on_terminal: bool = True
    ) -> list[str]:
        """The command that runs something in a job, beside what runs there."""
        raise self.lacks("lets nobody into a job that runs")

    def entry_number(self, job: str, task: str | None) -> str:
        """By what `entry_words` knows a task that runs."""
        raise self.lacks("lets nobody into a job that runs")

    def advice(self, action: str, job: str) -> str | None:
        """One of `by_hand`, for this job; None where the scheduler has none."""
        return self.by_hand[action].format(job=job) if action in self.by_hand else None

    def lacks(self, what: str) -> SchedulerError:
        """The one sentence about an optional part that is not there."""
        return SchedulerError(
            f"{self.title} {what}, as far as runyard knows it",
            mend=f"the guide to {self.title} in the documentation says what works there",
        )
