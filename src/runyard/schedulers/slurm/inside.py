"""What a job of Slurm's knows of itself, from inside. The standard library alone."""

from __future__ import annotations

import contextlib
import os
import time

from runyard.schedulers.inside import PATIENCE, JobEnvironment, JobTimes, NotYet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from runyard.schedulers.slurm.job_ends import JobEnds

_CANCEL_SECONDS = 30.0
_LOOK_SECONDS = 0.1
_EXPORT = "SLURM_EXPORT_ENV"
# From 26.05 on the job's script has a step's number too; -5 in 32 bits without a sign.
_BATCH_STEPS = ("-5", "4294967291")
# What a step says of itself: one that was entered by srun (`runyard gauge`, `runyard shell`) has
# one node, and a new srun would believe that it may have no more.
_OF_A_STEP = (
    "SLURM_JOB_NODELIST", "SLURM_JOB_NUM_NODES", "SLURM_NNODES", "SLURM_NODELIST", "SLURM_NPROCS",
    "SLURM_NTASKS", "SLURM_NTASKS_PER_NODE", "SLURM_TASKS_PER_NODE", "SLURM_DISTRIBUTION",
    "SLURM_PTY_PORT", "SLURM_PTY_WIN_COL", "SLURM_PTY_WIN_ROW",
)  # fmt: skip


class Job(JobEnvironment):
    # The step's size: a batch script's own SLURM_NTASKS would count tasks that were never started.
    launcher = (
        "srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID",
        "SLURM_STEP_TASKS_PER_NODE", ("SLURM_JOB_ID", "SLURM_STEP_ID"),
    )  # fmt: skip

    def __init__(self, environ: Mapping[str, str]) -> None:
        super().__init__(environ)
        self._made_at = time.time()
        self._ends: JobEnds | None = None
        say = environ.get
        self.own_id = self.job_id = say("SLURM_JOB_ID") or None
        if say("SLURM_ARRAY_JOB_ID") and say("SLURM_ARRAY_TASK_ID"):
            # A task has a number of its own, which nobody types.
            self.job_id, self.task = say("SLURM_ARRAY_JOB_ID"), say("SLURM_ARRAY_TASK_ID")
        self.node = say("SLURMD_NODENAME") or None
        self.nodes = self._number("SLURM_JOB_NUM_NODES", 1)
        self.node_number = self._number("SLURM_NODEID", 0)
        self.rank = self._number("SLURM_PROCID", 0)
        self.local_rank = self._number("SLURM_LOCALID", 0)
        self.tasks = self._number("SLURM_NTASKS", 1)
        step = say("SLURM_STEP_ID")
        self.step_id = None if not step or step in _BATCH_STEPS else step
        with contextlib.suppress(KeyError, ValueError):
            # Zero is how a job without a limit may be written.
            self.end = float(environ["SLURM_JOB_END_TIME"]) or None
        self.folder = say("SLURM_TMPDIR") or None
        self.gpus = say("SLURM_STEP_GPUS") or say("SLURM_JOB_GPUS") or ""
        on_node = say("SLURM_GPUS_ON_NODE", "")
        if on_node.isdecimal():
            self.gpu_count = int(on_node)
        elif on_node or self.gpus:
            self.gpu_count = (on_node or self.gpus).count(",") + 1
        self.restarts = self._number("SLURM_RESTART_COUNT", 0)

    def _number(self, name: str, default: int) -> int:
        try:
            return int(self.environ.get(name) or default)
        except ValueError:
            return default

    def first_node(self) -> str | None:
        say = self.environ.get
        hosts = say("SLURM_STEP_NODELIST") or say("SLURM_JOB_NODELIST")
        return first_host(hosts) if hosts else None

    def find_end(self, patience: float = PATIENCE) -> float | None:
        """Older releases set no variable for it; a process that cannot learn it has no end."""
        with contextlib.suppress(KeyError, ValueError):
            end = float(self.environ["SLURM_JOB_END_TIME"]) or None
            return self._by_our_clock(self._number("SLURM_JOB_START_TIME", 0), end)
        until = time.monotonic() + patience
        while self.own_id is not None:
            with contextlib.suppress(NotYet):
                return self.look().end
            left = until - time.monotonic()
            if left <= 0:
                break
            time.sleep(min(left, _LOOK_SECONDS))
        return None

    def look(self) -> JobTimes:
        if self._ends is None:
            from runyard.schedulers.slurm.job_ends import JobEnds

            named = os.environ.get("RUNYARD_HOME") or "~/.runyard"
            home = os.path.abspath(os.path.expanduser(named))
            self._ends = JobEnds(home, self.environ.get("SLURM_CLUSTER_NAME") or "slurm")
        row = self._ends.look(self.own_id or "")
        # Of a job that came back from the queue, an old answer has the end of its former start.
        if row is None or row.restarts != self.restarts:
            raise NotYet
        end = self._by_our_clock(row.start, row.end)
        limit = None if row.end is None or not row.start else row.end - row.start
        return JobTimes(end, limit=limit, is_pushed_out=row.preempted_at is not None)

    @property
    def is_asking(self) -> bool:
        return self._ends is not None and self._ends.is_asking

    def close(self) -> None:
        if self._ends is not None:
            self._ends.close()

    def _by_our_clock(self, start: float, end: float | None) -> float | None:
        """Slurm tells both by the controller's clock, which may be ahead of this node's. No process
        of a job begins before the job does: if it seems so, the difference is the clocks'. `start`:
        0 where it is not known."""
        return None if end is None else end - max(0.0, start - self._made_at)

    def memory_mb(self, cpus: int) -> int | None:
        of_node = self._number("SLURM_MEM_PER_NODE", 0)
        of_cpus = self._number("SLURM_MEM_PER_CPU", 0) * cpus
        # Zero stands for all that the node has.
        return min((size for size in (of_node, of_cpus) if size > 0), default=None)

    def with_folder(self, path: str) -> dict[str, str]:
        return {"SLURM_TMPDIR": path}

    def step_environ(self) -> dict[str, str]:
        # sbatch --export=NONE leaves it to the job: srun would give its tasks no variable of ours.
        environ = {name: value for name, value in self.environ.items() if name != _EXPORT}
        if self.step_id is None:
            return environ
        return {
            name: value
            for name, value in environ.items()
            if name not in _OF_A_STEP and not name.startswith(("SLURM_STEP", "SLURM_CPU_BIND"))
        }

    def ranks_command(self, nodes: int, each: int, *, mpi: bool) -> list[str]:
        # One task fewer or more than was asked would leave the others waiting for it.
        return [
            "srun", "--overlap", f"--nodes={nodes}", f"--ntasks={nodes * each}",
            f"--ntasks-per-node={each}", "--kill-on-bad-exit=1", "--input=none",
            *(["--mpi=pmix"] if mpi and _has_pmix() else []),
        ]  # fmt: skip

    def others_command(self, count: int) -> list[str]:
        number = str(count)
        return [
            "srun", "--overlap", "--nodes", number, "--ntasks", number, "--ntasks-per-node", "1",
            "--cpus-per-task", "1", "--exclude", self.node or "", "--kill-on-bad-exit=0",
        ]  # fmt: skip

    def no_ranks(self, why: str) -> str:
        return (
            f"srun cannot be started: {why}; ranks over nodes need a job of Slurm (--on slurm), "
            "and script.path in the profile if srun lies elsewhere"
        )

    def cancel_waiting(self, folder: str) -> bool:
        user = f"--user={os.getuid()}"
        waiting = _ask("squeue", user, "--states=PENDING", "--noheader", "--format=%F|%Z")
        rows = (line.strip().partition("|") for line in waiting.splitlines())
        jobs = sorted({job for job, _, place in rows if place == folder})
        if jobs:
            _ask("scancel", "--state=PENDING", *jobs)
        return bool(jobs)


def first_host(hosts: str) -> str:
    """The first host of a list: 'gpu[003-005,9],login1' is 'gpu003'."""
    import re

    match = re.match(r"([^\[,]*)(?:\[([^\],-]+)[^\]]*\]([^,]*))?", hosts)
    return hosts if match is None else "".join(part or "" for part in match.groups())


def _ask(*words: str) -> str:
    import subprocess

    return subprocess.run(
        words, capture_output=True, text=True, errors="replace", timeout=_CANCEL_SECONDS, check=True
    ).stdout


def _has_pmix() -> bool:
    import subprocess

    with contextlib.suppress(OSError):
        answer = subprocess.run(["srun", "--mpi=list"], capture_output=True, text=True, check=False)
        return "pmix" in answer.stdout + answer.stderr
    return False
