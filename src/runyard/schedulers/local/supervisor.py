"""Runs the tasks of one job, in the background: `python -m runyard.schedulers.local.supervisor`."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from runyard.schedulers.local.inside import JOB_ID, TASK_ID
from runyard.schedulers.local.job_folder import JobFolder, TaskState

_LOOK_SECONDS = 0.1
# What a program has after TERM, before it is killed.
_GRACE_SECONDS = 30.0


def supervise(job: JobFolder) -> None:
    """Start each task as soon as a core is free, and write down how it ends."""
    while _waits(job):
        time.sleep(_LOOK_SECONDS)
    waiting = list(job.numbers)
    running: dict[int, tuple[subprocess.Popen[bytes], float, float | None]] = {}
    while waiting or running:
        for task in [task for task in waiting if job.is_cancelled(task, "PENDING")]:
            waiting.remove(task)
            job.write(task, TaskState("CANCELLED", None, time.time()))
        while waiting and len(running) < (os.cpu_count() or 1):
            task = waiting.pop(0)
            running[task] = (_start(job, task), time.time(), None)
            job.write(task, TaskState("RUNNING", running[task][1]))
        for task, (process, start, cancelled_at) in list(running.items()):
            code = process.poll()
            if code is not None:
                ended = "FAILED" if cancelled_at is None else "CANCELLED"
                state = "COMPLETED" if code == 0 else ended
                job.write(task, TaskState(state, start, time.time()))
                del running[task]
            elif cancelled_at is None and job.is_cancelled(task, "RUNNING"):
                running[task] = (process, start, time.monotonic())
                _signal(process, signal.SIGTERM)
            elif cancelled_at is not None and time.monotonic() - cancelled_at > _GRACE_SECONDS:
                _signal(process, signal.SIGKILL)
        time.sleep(_LOOK_SECONDS)


def _waits(job: JobFolder) -> bool:
    """For the job before it to end; who was cancelled meanwhile does not wait."""
    if job.after is None or all(job.is_cancelled(task, "PENDING") for task in job.numbers):
        return False
    before = JobFolder(job.path.parent / job.after)
    return before.path.is_dir() and any(state.end is None for _, state in before.states())


def _start(job: JobFolder, task: int) -> subprocess.Popen[bytes]:
    environ = {**os.environ, JOB_ID: job.path.name}
    if job.tasks is not None:
        environ[TASK_ID] = str(task)
    with job.log(task).open("ab") as log:
        return subprocess.Popen(
            ["/bin/sh", str(job.script)],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environ, start_new_session=True,
        )  # fmt: skip


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


if __name__ == "__main__":
    supervise(JobFolder(Path(sys.argv[1])))
