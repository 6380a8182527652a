"""What a job printed: the log files of all its tasks, merged, each line marked with its task.

The files are there when Slurm has forgotten the job, and hold what its trials print, too. The
server has that as well, trial by trial.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from runyard.actions.events import Notice
from runyard.actions.watching.log_events import LogLines, LogsRequest
from runyard.actions.watching.polling import Polling
from runyard.actions.watching.sweep_logs import TrialConsoles
from runyard.client.api import Api
from runyard.errors import NotFoundError, ServerError
from runyard.launch.watching import look
from runyard.log_files import LogPattern
from runyard.shapes.jobs import Job

_ASK_QUEUE_SECONDS = 10.0
_BLOCK = 1 << 16


@dataclass
class LogFile:
    """How far one log file has been read."""

    path: Path
    label: str
    at: int = 0
    rest: bytes = field(default=b"")

    def skip_to_last(self, lines: int) -> None:
        """Begin so many lines before the end."""
        size = self.path.stat().st_size
        with self.path.open("rb") as file:
            tail, begin = b"", size
            while begin > 0 and tail.rstrip(b"\n").count(b"\n") < lines:
                begin = max(0, begin - _BLOCK)
                file.seek(begin)
                tail = file.read(size - begin)
        shown = tail.splitlines(keepends=True)[-lines:] if lines else []
        self.at = size - sum(map(len, shown))

    def read(self) -> list[str]:
        """New whole lines. A file that became shorter was begun anew."""
        try:
            with self.path.open("rb") as file:
                if os.fstat(file.fileno()).st_size < self.at:
                    self.at, self.rest = 0, b""
                file.seek(self.at)
                data = file.read()
        except OSError:  # Not there yet, or on a node's own disk.
            return []
        self.at += len(data)
        *lines, self.rest = (self.rest + data).split(b"\n")
        return [line.decode("utf-8", "replace").rstrip("\r") for line in lines]

    def finish(self) -> list[str]:
        rest, self.rest = self.rest, b""
        return [rest.decode("utf-8", "replace")] if rest else []


def find_logs(job: Job, task: str | None = None) -> list[LogFile]:
    """The log files that there are, of every task or of one, in the order of the tasks."""
    pattern = LogPattern(job["log_pattern"], job["job_id"], job["name"], job["array"] is not None)
    return [LogFile(path, label) for path, label in pattern.find(task).items()]


def job_logs(
    request: LogsRequest, job: Job, task: str | None, api: Api, connect: Callable[[], Api]
) -> Iterator[LogLines | Notice]:
    """The job's own log; with `trials`, or where it has none, what its trials printed."""
    trials = request.trials or not (job["log_pattern"] or job["sweep"] is None)
    polling = Polling(api, connect)
    merged = _Merged(polling, job, task, of_trials=trials)
    yield from merged.read_new(request.lines)
    while request.follow and not (yield from merged.is_over()):
        polling.wait()
        yield from merged.read_new()
    yield from merged.read_rest()
    if not merged.has_printed:
        yield _nothing_printed(job, merged, follow=request.follow)


class _Merged:
    """Files and consoles of a job, read side by side."""

    def __init__(self, polling: Polling, job: Job, task: str | None, *, of_trials: bool) -> None:
        self._polling, self._job, self._task = polling, job, task
        self._files: dict[Path, LogFile] = {}
        self._asked_at = time.monotonic()
        self._consoles: TrialConsoles | None = None
        if of_trials and job["sweep"] is not None:
            self._consoles = TrialConsoles(job["sweep"], _of_job(job, task))
        self.has_printed = False

    @property
    def files(self) -> list[Path]:
        return list(self._files)

    def read_new(self, lines: int | None = None) -> Iterator[LogLines]:
        for log in find_logs(self._job, self._task) if self._consoles is None else ():
            if log.path not in self._files:
                self._files[log.path] = log
                if lines is not None:
                    log.skip_to_last(lines)
        for log in self._files.values():
            yield self._lines(log.label, log.read())
        if self._consoles is not None:
            try:
                for name, new in self._consoles.read(self._polling.api, lines):
                    yield self._lines(name, new)
            except ServerError:
                self._polling.reconnect()

    def read_rest(self) -> Iterator[LogLines]:
        for log in self._files.values():
            yield self._lines(log.label, log.finish())
        if self._consoles is not None:
            for name, rest in self._consoles.finish():
                yield self._lines(name, rest)

    def is_over(self) -> Generator[LogLines, None, bool]:
        """Whether the job has ended; what it printed last is read after this."""
        if self._job["ended_at"] is None and time.monotonic() - self._asked_at > _ASK_QUEUE_SECONDS:
            self._asked_at = time.monotonic()
            try:
                [self._job] = look(self._polling.api.jobs, [self._job]).jobs
            except ServerError:
                self._polling.reconnect()
            yield from self.read_new()
        return self._job["ended_at"] is not None

    def _lines(self, source: str, lines: list[str]) -> LogLines:
        self.has_printed = self.has_printed or bool(lines)
        return LogLines(source, lines, is_own=True)  # A job that is known here is the caller's own.


def _of_job(job: Job, task: str | None) -> Callable[[str | None], bool]:
    """Whether a trial's job is this one, or this task of it."""
    if task is not None:
        return lambda where: where == f"{job['job_id']}_{task}"
    return lambda where: (where or "").partition("_")[0] == job["job_id"]


def _nothing_printed(job: Job, merged: _Merged, *, follow: bool) -> Notice:
    if job["log_pattern"] and not merged.files:
        folder = Path(job["log_pattern"]).parent
        if not folder.is_dir():
            raise NotFoundError(
                f"the log folder of job {job['job_id']} is not there: {folder}",
                mend="it may have been cleaned, or is on another machine's disk",
            )
    waits = "" if job["started_at"] or follow else "; it has not started"
    also = f"; `runyard logs {job['job_id']} --trials` asks the server" if job["sweep"] else ""
    return Notice(f"job {job['job_id']} has printed nothing{waits}{also}")
