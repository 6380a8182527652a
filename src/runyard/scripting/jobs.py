"""Handles of submitted work: one program, or one call of a function."""

from __future__ import annotations

import re
import time
from typing import Generic, TypeVar

from runyard.actions.connect import open_server
from runyard.actions.watching.log_events import LogLines, LogsRequest, LogText
from runyard.actions.watching.logs import read_logs
from runyard.client.api import Api
from runyard.client.sweeps import ENDED_STATES
from runyard.errors import NotFoundError, RunyardError, UsageError
from runyard.home import locate
from runyard.scripting.calls import CallFolder, Outcome, RemoteTraceback
from runyard.scripting.options import log_notice
from runyard.scripting.watch import Watch
from runyard.search.tasks import NUMBER
from runyard.shapes.runs import Run
from runyard.shapes.sweeps import Trial

T = TypeVar("T")
_LAST_LINES = 20
_IN_LIST = re.compile(r":[0-9]+$")
# A file that a node has written may be seen later on another one.
_FILE_SECONDS = 10.0


class JobError(RunyardError):
    """A job ended without a result: its program was killed, canceled, or could not start."""


class Job:
    """One program that was submitted; made by `runyard.submit`.

    It keeps running when this process ends; `runyard status ID` and the page show it too.
    """

    def __init__(self, watch: Watch, number: int = 1, *, is_alone: bool = True) -> None:
        self._watch = watch
        self._number = number
        self._is_alone = is_alone

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} {self.state}>"

    @property
    def id(self) -> str:
        """Of its sweep, which commands take: `runyard logs ID`."""
        return self._watch.id

    @property
    def name(self) -> str:
        return self.id if self._is_alone else f"{self.id}:{self._number}"

    @property
    def state(self) -> str:
        """waiting, running, finished, failed, stopped or canceled."""
        trial = self._trial()
        if trial is not None:
            return trial["state"]
        return "waiting" if self._watch.sweep()["state"] in ("running", "paused") else "canceled"

    @property
    def exit_code(self) -> int | None:
        """Of the program; None until it has ended."""
        trial = self._trial()
        return None if trial is None else trial["exit_code"]

    @property
    def job_ids(self) -> list[str]:
        """The cluster's job numbers; the jobs of one array share a number."""
        return [job["job_id"] for job in self._watch.jobs()]

    def done(self) -> bool:
        """Whether it has ended, with or without success."""
        return self.state in ENDED_STATES

    def wait(self, timeout: float | None = None) -> str:
        """Wait for its end; returns the final state. TimeoutError after `timeout` seconds."""
        self._watch.wait(self.done, timeout)
        return self.state

    def logs(self) -> str:
        """The program's output so far; before it starts, the output of its job."""
        trial, api = self._trial(), self._watch.api
        if trial is not None and trial["run"] is not None:
            return _text(LogsRequest(f"run:{trial['id']}"), api)
        jobs = self._watch.jobs()
        return _text(LogsRequest(f"job:{jobs[0]['job_id']}"), api) if jobs else ""

    def runs(self) -> list[Run]:
        """Its tracked run, with config, summary and state; empty before it starts."""
        trial = self._trial()
        runs = self._watch.api.runs(sweep=self._watch.key)
        return [run for run in runs if trial is not None and run["id"] == trial["id"]]

    def cancel(self) -> None:
        """End it, with its job; does nothing if it has ended."""
        if not self.done():
            self._watch.cancel()

    def _trial(self) -> Trial | None:
        trials = self._watch.trials()
        return next((row for row in trials if row["values"][NUMBER] == self._number), None)


def job(name: str) -> Job:
    """The handle of a job that an earlier process submitted, by its `id` or `name`.

        job = runyard.job("k3x9p2qa")
        job = runyard.job("k3x9p2qa:2")  # the second of a map

    For a function it is a FunctionJob, which has `result()`.
    """
    home = locate()
    words, _, number = name.rpartition(":") if _IN_LIST.search(name) else (name, "", "")
    sweep = open_server(log_notice, home, quiet=True).sweeps.find(words)
    tasks = sweep["config"].get("runyard", {}).get("tasks", [])
    if not tasks:
        raise UsageError(
            f"{words} is a sweep, and not a job", mend=f"`runyard status {sweep['id']}` shows it"
        )
    if len(tasks) > 1 and not number:
        raise UsageError(
            f"{words} is a list of {len(tasks)} jobs",
            mend=f'name one of them: runyard.job("{sweep["id"]}:1")',
        )
    numbers = sweep["config"]["parameters"][NUMBER]["values"]
    place = int(number or numbers[0])
    if place not in numbers:
        raise NotFoundError(f"{words} has no job {place}", mend=f"it has {len(tasks)} jobs")
    watch, is_alone = Watch(sweep, home), len(tasks) == 1
    calls = CallFolder.of_command_line(tasks[numbers.index(place)]["command_line"])
    if calls is None:
        return Job(watch, place, is_alone=is_alone)
    return FunctionJob(watch, calls, place, is_alone=is_alone)


class FunctionJob(Job, Generic[T]):
    """One call of a function, as a job; made by `runyard.submit` and `runyard.map`."""

    def __init__(
        self, watch: Watch, calls: CallFolder, number: int = 1, *, is_alone: bool = True
    ) -> None:
        super().__init__(watch, number, is_alone=is_alone)
        self._calls = calls

    @property
    def state(self) -> str:
        state = super().state
        is_canceled = state in ("waiting", "failed") and self._calls.is_canceled(self._number)
        return "canceled" if is_canceled else state

    def result(self, timeout: float | None = None) -> T:
        """Wait, and return what the function returned; raise what it raised."""
        outcome = self._outcome(timeout)
        if outcome.error is not None:
            raise outcome.error from RemoteTraceback(outcome.traceback)
        value: T = outcome.value
        return value

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """What the function raised, or why there is no result; None if there is one."""
        try:
            return self._outcome(timeout).error
        except JobError as error:
            return error

    def cancel(self) -> None:
        """End this call; the other calls of a list continue."""
        if self._is_alone:
            super().cancel()
            return
        trial = self._trial()
        if self.done():
            return
        self._calls.cancel(self._number)
        if trial is not None and trial["run"] is not None:
            api = self._watch.api
            api.stop_run(api.run(trial["id"]))

    def _outcome(self, timeout: float | None) -> Outcome:
        state = self.wait(timeout)
        end = time.monotonic() + (_FILE_SECONDS if state == "finished" else 0.0)
        while True:
            outcome = None if state == "canceled" else self._calls.outcome(self._number)
            if outcome is not None:
                return outcome
            if time.monotonic() >= end:
                break
            time.sleep(0.2)
        trial = self._trial()
        cause = f": {trial['cause']}" if trial is not None and trial["cause"] else ""
        raise JobError(
            f"{self.name} has no result, it is {state}{cause}",
            said="\n".join(self.logs().splitlines()[-_LAST_LINES:]) or None,
            mend=f"`runyard logs {self.id}` prints all of it",
        )


def _text(request: LogsRequest, api: Api) -> str:
    pieces: list[str] = []
    try:
        for piece in read_logs(request, api, lambda: api):
            if isinstance(piece, LogText):
                pieces.append(piece.text)
            elif isinstance(piece, LogLines):
                pieces += [f"{line}\n" for line in piece.lines]
    except NotFoundError:  # Its job has not written its log yet.
        return ""
    return "".join(pieces)
