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
from collections.abc import Callable, Iterable
from typing import Protocol

from runyard.schedulers.jobs import Batch, JobState, Record, Reply
from runyard.schedulers.partitions import Partition

# How long a scheduler that does not answer is asked again, and how long one question may take.
PATIENCE_SECONDS = ANSWER_SECONDS = 120.0

Notice = Callable[[str], None]


class Scheduler(Protocol):
    """Made for one environment, whose variables say which cluster is meant.

    Methods may be called from any process of the user's, on any machine of the cluster, and keep
    nothing in memory between calls. Where the scheduler refuses or stays silent they raise
    SchedulerError, and SchedulerMissing where its commands are not installed.
    """

    @property
    def name(self) -> str:
        """What `--on` calls it."""
        ...

    @property
    def has_queue(self) -> bool:
        """Whether jobs wait for nodes and outlive the command that sent them. Where not, commands
        work in the foreground."""
        ...

    def is_here(self) -> bool:
        """Whether jobs can be sent from this machine. Never raises."""
        ...

    def cluster_name(self) -> str | None:
        """What the scheduler calls its cluster: job numbers are unique within it. Never raises."""
        ...

    def submit(
        self,
        batch: Batch,
        *,
        may_be_there: bool = False,
        notice: Notice | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Reply:
        """Send a job once, although answers may be lost.

        A key that was taken is never taken a second time where `may_be_there` says that an earlier
        command may have sent it. The job inherits the shell's variables, but none of the
        scheduler's own that would overrule the script, and no key of W&B's.
        """
        ...

    def try_out(self, batch: Batch) -> Reply:
        """What would be said to this job; nothing is sent."""
        ...

    def poll(
        self,
        ids: Iterable[str],
        *,
        patience: float = PATIENCE_SECONDS,
        seconds: float = ANSWER_SECONDS,
    ) -> dict[str, JobState]:
        """How these jobs of the user's own stand, by one question for all of them.

        Every id that was asked for is in the answer; one that the queue does not know (any more)
        has no tasks. A state that is new to us is UNKNOWN and no error.
        """
        ...

    def cancel(self, ids: Iterable[str], *, only_waiting: bool = False) -> None:
        """Cancel jobs or tasks of arrays (ID_TASK); what has ended or is unknown is no error."""
        ...

    def records(self, ids: Iterable[str], *, seconds: float = 30.0) -> dict[str, list[Record]]:
        """What is known of jobs that have left the queue, by job; jobs without a record are left
        out. NoAccounting where the site keeps none."""
        ...

    def partitions(self) -> list[Partition]:
        """What the cluster has, the default first."""
        ...

    def array_size(self) -> int | None:
        """The first index that a task of an array cannot have; None where it does not say."""
        ...
