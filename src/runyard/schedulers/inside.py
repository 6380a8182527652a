"""What a process knows of the job that it runs in.

    job = this_job()
    job.name, job.node, job.find_end()

For `node`, `train` and `client`, which know no scheduler: this module, and the readers that it
loads, import the standard library alone, and at their top as little of it as they can. Every agent
loads them, on every node.
"""

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# Each scheduler's package, how the variables begin that its jobs have, and the program that starts
# processes on the other nodes of a job. The job's own scheduler is found by its variables and not
# by one that our script sets: a program may have been started by somebody else's script.
_SCHEDULERS = (
    ("slurm", "SLURM", "srun"),
    ("gridengine", "SGE", "qrsh"),
    ("local", "RUNYARD_LOCAL_JOB", ""),
)
VARIABLE_PREFIXES = tuple(f"{prefix}_" for _, prefix, _ in _SCHEDULERS)
# Seconds that a process waits at its start to hear when its job ends.
PATIENCE = 5.0
STEP_PROGRAMS = tuple(program for _, _, program in _SCHEDULERS if program)


class NotYet(Exception):
    """The scheduler has not answered yet. Look again later."""


class JobTimes:
    """What the scheduler says of a running job now. `end`: in epoch seconds by this node's clock,
    None if there is none. `limit`: seconds from the job's start to its end, by the scheduler's own
    clock. `is_pushed_out`: it ends then because another job gets its place."""

    def __init__(
        self, end: float | None, *, limit: float | None = None, is_pushed_out: bool = False
    ) -> None:
        self.end = end
        self.limit = limit
        self.is_pushed_out = is_pushed_out


class JobEnvironment:
    """A process outside of any job. A scheduler's reader, the class `Job` in its `inside.py`, is a
    subclass that sets what its variables say; what they do not say stays as it is here.

    Making one reads variables alone, and raises nothing, whatever they contain. The scheduler is
    asked by methods only, which may take seconds.
    """

    launcher: tuple[str, str, str, str, str, tuple[str, ...]] | None = None
    """How the scheduler's own launcher tells a rank its place: the launcher's name; the variables
    for rank, size, local rank and local size; and those that all ranks of one start share."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = environ
        # As `Scheduler.poll` and `cancel` have it; None outside of a job.
        self.job_id: str | None = None
        # The number in an array; None: it is no array.
        self.task: str | None = None
        # Unlike `job_id`, no two tasks of an array share it.
        self.own_id: str | None = None
        # What the scheduler calls this node: several nodes may share a host, and a host may have
        # several names.
        self.node: str | None = None
        self.nodes = 1
        self.node_number = 0
        # Among the processes that the scheduler started at once.
        self.rank = 0
        self.local_rank = 0
        self.tasks = 1
        # Of a part of the job that was started by itself; None in the job's script.
        self.step_id: str | None = None
        # In epoch seconds, where a variable says it.
        self.end: float | None = None
        # On the node's own disk.
        self.folder: str | None = None
        # The names or numbers of the job's GPUs on this node, with commas.
        self.gpus = ""
        self.gpu_count: int | None = None
        self.restarts = 0

    @property
    def is_job(self) -> bool:
        return self.own_id is not None

    @property
    def name(self) -> str | None:
        """123, or 123_4 in an array: as `Scheduler.poll` and `cancel` have it."""
        return self.job_id if self.task is None else f"{self.job_id}_{self.task}"

    def first_node(self) -> str | None:
        """The name of the node that the others can meet at."""
        return None

    def find_end(self, patience: float = PATIENCE) -> float | None:
        """When the job's time is up, in epoch seconds; None: never, or nobody says. Where the
        scheduler shares its answers among many agents, one of them may take `patience` seconds."""
        return self.end

    def look(self) -> JobTimes | None:
        """What has become of the job's end since. It returns at once. NotYet: nobody knows so far.
        None: this scheduler is not asked again."""
        return None

    @property
    def is_asking(self) -> bool:
        """Whether this process waits for an answer that others wait for too: `look` soon."""
        return False

    def close(self) -> None:
        """`look` is not called any more."""

    def memory_mb(self, cpus: int) -> int | None:
        """What the job may use on this node, where it has so many CPUs."""
        return None

    def with_folder(self, path: str) -> dict[str, str]:
        """The variables that tell a program that the folder on the node's disk is another one."""
        return {}

    def step_environ(self) -> dict[str, str]:
        """The variables for `ranks_command`: without what a step around us says of itself."""
        return dict(self.environ)

    def ranks_command(self, nodes: int, each: int, *, mpi: bool) -> list[str]:
        """The words before a command that start it `each` times on each of the nodes. All of them
        end when one fails. OSError where the scheduler cannot."""
        raise OSError(errno.ENOSYS, "this scheduler starts no programs on other nodes")

    def others_command(self, count: int) -> list[str]:
        """The words before a command that start it once on each of the `count` other nodes."""
        raise OSError(errno.ENOSYS, "this scheduler starts no programs on other nodes")

    def no_ranks(self, why: str) -> str:
        """What a person is told where `ranks_command` or its program fails."""
        return f"ranks cannot be started: {why}"

    def cancel_waiting(self, folder: str) -> bool:
        """Cancel the user's jobs with this working folder that have not begun; says whether there
        were any. OSError or subprocess.SubprocessError where the scheduler does not let us."""
        return False


def this_job(environ: Mapping[str, str] | None = None) -> JobEnvironment:
    """The job of these variables, by default of this process."""
    variables = os.environ if environ is None else environ
    jobs = []
    for package, prefix, _ in _SCHEDULERS:
        if any(name.startswith(prefix) for name in variables):
            job = _read(package, variables)
            if job.is_job:
                return job
            jobs.append(job)
    return jobs[0] if jobs else JobEnvironment(variables)


def job_of_ranks(environ: Mapping[str, str] | None = None) -> JobEnvironment:
    """As `this_job`. Outside of a job it is the first scheduler's, which says what is missing."""
    job = this_job(environ)
    return job if job.is_job else _read(_SCHEDULERS[0][0], job.environ)


def _read(package: str, variables: Mapping[str, str]) -> JobEnvironment:
    # Not importlib, which is one more file.
    module = __import__(f"runyard.schedulers.{package}.inside", fromlist=["Job"])
    job: JobEnvironment = module.Job(variables)
    return job
