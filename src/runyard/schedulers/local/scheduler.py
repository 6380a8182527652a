"""This machine as a scheduler."""

from __future__ import annotations

import fcntl
import hashlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from runyard.home import locate
from runyard.schedulers.errors import NoAccounting
from runyard.schedulers.jobs import Batch, JobState, Record, Reply, Tasks
from runyard.schedulers.local.job_folder import JobFolder
from runyard.schedulers.partitions import Count, Partition
from runyard.schedulers.protocol import PATIENCE, Notice, Scheduler, Sleep
from runyard.schedulers.states import state_named

_NOT_INHERITED = ("WANDB_API_KEY",)


class Local(Scheduler):
    """Jobs below `folder`, by default in the state folder."""

    name = "here"
    title = "this machine"
    has_queue = False

    def __init__(
        self, environ: Mapping[str, str] | None = None, folder: Path | None = None
    ) -> None:
        self._environ = os.environ if environ is None else environ
        self._folder = locate().path / "local" if folder is None else folder

    def is_here(self) -> bool:
        return True

    def demand(self) -> None:
        """Nothing has to be installed."""

    def cluster_name(self) -> str | None:
        return socket.gethostname()

    def submit(
        self, batch: Batch, *, notice: Notice | None = None, sleep: Sleep = time.sleep
    ) -> Reply:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (self._folder / "turn").open("a") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            mark = self._folder / f"key-{hashlib.sha256(batch.key.encode()).hexdigest()[:16]}"
            if batch.may_be_there and mark.is_symlink():
                return Reply("taken", mark.readlink().name)
            job = self._make(batch)
            mark.unlink(missing_ok=True)
            mark.symlink_to(job.path.name)
            self._start(job)
        return Reply("taken", job.path.name)

    def try_out(self, batch: Batch) -> Reply:
        return Reply("taken", words="it would start at once")

    def poll(
        self, ids: Iterable[str], *, patience: float = PATIENCE, seconds: float = PATIENCE
    ) -> dict[str, JobState]:
        return {job_id: self._state(job_id) for job_id in ids}

    def cancel(self, ids: Iterable[str], *, only_waiting: bool = False) -> None:
        for which in ids:
            job_id, _, task = which.partition("_")
            job = self._job(job_id)
            if job is not None:
                job.cancel(int(task) if task else None, only_waiting=only_waiting)

    def records(self, ids: Iterable[str], *, seconds: float = 30.0) -> dict[str, list[Record]]:
        raise NoAccounting("this machine keeps no accounting")

    def partitions(self) -> list[Partition]:
        cpus = os.cpu_count() or 1
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
        name = socket.gethostname()
        return [
            Partition(
                name,
                is_default=True,
                nodes=Count(1, 1),
                cpus=Count(cpus, cpus),
                memory=(memory, memory),
            )
        ]

    def array_size(self) -> int | None:
        return None

    def _job(self, job_id: str) -> JobFolder | None:
        folder = self._folder / job_id
        return JobFolder(folder) if job_id.isdecimal() and folder.is_dir() else None

    def _make(self, batch: Batch) -> JobFolder:
        used = [int(folder.name) for folder in self._folder.iterdir() if folder.name.isdecimal()]
        job = JobFolder(self._folder / str(max(used, default=0) + 1))
        job.path.mkdir(mode=0o700)
        job.script.write_text(batch.text)
        if batch.after is not None:
            (job.path / "after").write_text(batch.after)
        return job

    def _start(self, job: JobFolder) -> None:
        environ = {
            name: value for name, value in self._environ.items() if name not in _NOT_INHERITED
        }
        words = [sys.executable, "-m", "runyard.schedulers.local.supervisor", str(job.path)]
        with job.lock.open("w") as lock:
            # The lock goes over to the supervisor: nobody finds a job without one.
            fcntl.flock(lock, fcntl.LOCK_EX)
            # By a shell that ends at once: the supervisor is nobody's child who may forget it.
            subprocess.run(
                ["/bin/sh", "-c", '"$@" </dev/null >/dev/null 2>&1 &', "sh", *words],
                env=environ, pass_fds=(lock.fileno(),), start_new_session=True, cwd="/", check=True,
            )  # fmt: skip

    def _state(self, job_id: str) -> JobState:
        job = self._job(job_id)
        if job is None:
            return JobState(job_id)
        tasks = [
            Tasks(
                which=job_id if job.tasks is None else f"{job_id}_{number}",
                count=1,
                state=state_named(task.state),
                reason="Dependency" if task.state == "PENDING" and job.after else None,
                start=task.start,
                end=task.end,
                nodes=socket.gethostname() if task.start is not None else None,
            )
            for number, task in job.states()
        ]
        return JobState(job_id, tuple(tasks))
