"""Jobs in Grid Engine's hands: how they stand, many at once; cancelling and holding them."""

from __future__ import annotations

import os
import pwd
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from runyard.reading.units import read_seconds
from runyard.schedulers.errors import NoAccounting
from runyard.schedulers.gridengine.accounting import flush_seconds, records
from runyard.schedulers.gridengine.commands import ask, ask_xml
from runyard.schedulers.gridengine.states import read_letters
from runyard.schedulers.jobs import JobState, Record, Tasks, read_ranges
from runyard.schedulers.protocol import PATIENCE
from runyard.schedulers.states import State, state_named

_AT_A_TIME = 500
_LOOK_SECONDS = 0.5
# The master writes a record in a moment of its own choosing.
_MARGIN_SECONDS = 1.0
# What the commands say of a job that has ended or never was.
_GONE = re.compile(r"does not exist|do not exist|already in deletion|registered .* for deletion")


@dataclass(frozen=True)
class Row:
    """A line of `qstat`: one task that runs, or all tasks of a job that wait alike."""

    job_id: str
    spec: str
    """Which tasks of an array: 4, 5-80:1 or 3,7-9:1; empty of a job that is no array."""
    is_finished: bool
    state: State
    start: float | None
    limit: float | None
    node: str | None
    follows: bool
    """Whether it waits for another job."""

    def numbers(self) -> Iterator[range]:
        """The tasks by their numbers; 0 of a job that is no array."""
        return read_ranges(self.spec or "0")

    def tasks(self) -> Tasks:
        return Tasks(
            which=_which(self.job_id, self.spec),
            count=max(1, sum(len(numbers) for numbers in self.numbers())),
            state=self.state,
            reason=self._reason(),
            start=self.start,
            end=None if self.start is None or self.limit is None else self.start + self.limit,
            nodes=self.node,
        )

    def _reason(self) -> str | None:
        if self.state.name == "SPECIAL_EXIT":
            return "JobError"
        if self.state.phase != "waiting":
            return None
        return "Dependency" if self.follows else "Resources"


def poll(
    ids: Iterable[str],
    environ: Mapping[str, str],
    *,
    patience: float = PATIENCE,
    seconds: float = PATIENCE,
) -> dict[str, JobState]:
    """How these jobs stand: `qstat` for the queue, the accounting file for what has ended."""
    wanted = list(dict.fromkeys(ids))
    if not wanted:
        return {}
    rows: dict[str, list[Row]] = {job_id: [] for job_id in wanted}
    for row in ask_queue(environ, patience=patience, seconds=seconds):
        if row.job_id in rows:
            rows[row.job_id].append(row)
    # After the queue: a job that ends between the two questions is in one of the answers at least.
    ended = _wait_for_records(rows, environ, seconds)
    return {
        job_id: JobState(job_id, tuple(_tasks(rows[job_id], ended.get(job_id, []))))
        for job_id in wanted
    }


def ask_queue(
    environ: Mapping[str, str], *, patience: float = PATIENCE, seconds: float = PATIENCE
) -> list[Row]:
    """One's own jobs that wait or run, and those of the finished that the master remembers."""
    words = ["qstat", "-u", pwd.getpwuid(os.geteuid()).pw_name, "-s", "prsz", "-r", "-xml"]
    what = "Grid Engine does not tell how the jobs stand"
    answer = ask_xml(words, environ, what, patience=patience, seconds=seconds)
    return read_rows(answer)


def read_rows(answer: Element) -> list[Row]:
    """What `qstat -xml` printed; a job without a number is passed over."""
    return [_read_row(job) for job in answer.iter("job_list") if job.findtext("JB_job_number")]


def cancel(ids: Iterable[str], environ: Mapping[str, str], *, only_waiting: bool = False) -> None:
    """Cancel jobs, or tasks of arrays (123_4); those that have ended already are no error."""
    wanted = list(dict.fromkeys(ids))
    if not only_waiting:
        _change("qdel", wanted, environ)
    elif wanted:
        # What is held cannot start between the question and its answer.
        _change("qhold", wanted, environ)
        waiting = [row for row in ask_queue(environ) if row.state.phase == "waiting"]
        _change("qdel", list(_waiting_parts(wanted, waiting)), environ)
        _change("qrls", wanted, environ)


def hold(ids: Iterable[str], environ: Mapping[str, str]) -> None:
    """Keep what waits from starting, until `release`."""
    _change("qhold", list(dict.fromkeys(ids)), environ)


def release(ids: Iterable[str], environ: Mapping[str, str]) -> None:
    _change("qrls", list(dict.fromkeys(ids)), environ)


def _change(command: str, parts: list[str], environ: Mapping[str, str]) -> None:
    """Run a command for jobs (123) and for tasks of them (123_4, 123_5-80:1)."""
    whole = [part for part in parts if "_" not in part]
    calls = [whole[begin : begin + _AT_A_TIME] for begin in range(0, len(whole), _AT_A_TIME)]
    calls += [
        [job_id, "-t", task] for job_id, _, task in (part.partition("_") for part in parts) if task
    ]
    for words in calls:
        answer = ask([command, *words], environ=environ)
        complaints = [line for line in f"{answer.output}\n{answer.complaint}".splitlines() if line]
        if not answer.is_good and not any(_GONE.search(line) for line in complaints):
            raise answer.refused(f"Grid Engine's {command} fails for {', '.join(words[:5])}")


def _waiting_parts(wanted: Iterable[str], waiting: Iterable[Row]) -> Iterator[str]:
    """What waits of these jobs and tasks, as `_change` takes it."""
    names = set(wanted)
    for row in waiting:
        if row.job_id in names:
            yield f"{row.job_id}_{row.spec}" if row.spec else row.job_id
        else:
            for numbers in row.numbers():
                yield from (
                    f"{row.job_id}_{number}"
                    for number in numbers
                    if f"{row.job_id}_{number}" in names
                )


def _wait_for_records(
    rows: Mapping[str, list[Row]], environ: Mapping[str, str], seconds: float
) -> dict[str, list[Record]]:
    """The records of what has ended.

    What was cancelled while it waited gets none, and the record of what ran is written some seconds
    after its end: only time tells which of both a finished job without a record is.
    """
    # Of other jobs accounting knows no more than the queue does.
    ids = [
        job_id
        for job_id, parts in rows.items()
        if not parts or any(row.is_finished or row.spec for row in parts)
    ]
    end: float | None = None
    while True:
        ended = _records(ids, environ)
        if not any(_unrecorded(rows[job_id], ended.get(job_id, [])) for job_id in ids):
            return ended
        if end is None:
            end = time.monotonic() + min(seconds, flush_seconds(environ) + _MARGIN_SECONDS)
        if time.monotonic() >= end:
            return ended
        time.sleep(_LOOK_SECONDS)


def _records(ids: list[str], environ: Mapping[str, str]) -> dict[str, list[Record]]:
    try:
        return records(ids, environ) if ids else {}
    except NoAccounting:
        return {}


def _numbers(rows: Iterable[Row]) -> set[int]:
    return {number for row in rows for numbers in row.numbers() for number in numbers}


def _number(record: Record) -> int:
    return int(record.which.partition("_")[2] or 0)


def _unrecorded(rows: list[Row], ended: list[Record]) -> list[int]:
    """The tasks that have left the queue without a record."""
    finished = _numbers(row for row in rows if row.is_finished)
    is_open = _numbers(row for row in rows if not row.is_finished)
    return sorted(finished - is_open - {_number(record) for record in ended})


def _tasks(rows: list[Row], ended: list[Record]) -> Iterator[Tasks]:
    is_open = _numbers(row for row in rows if not row.is_finished)
    for row in rows:
        if not row.is_finished:
            yield row.tasks()
    for record in ended:
        # The record of a task that runs again is of its try before.
        if _number(record) not in is_open:
            yield Tasks(record.which, 1, record.state, None, record.start, record.end, record.nodes)
    cancelled = _unrecorded(rows, ended)
    if cancelled:
        spec = "" if cancelled == [0] else ",".join(map(str, cancelled))
        which = _which(rows[0].job_id, spec)
        state = state_named("CANCELLED")
        yield Tasks(which, len(cancelled), state, None, None, None, None)


def _which(job_id: str, spec: str) -> str:
    if not spec:
        return job_id
    return f"{job_id}_{spec}" if spec.isdecimal() else f"{job_id}_[{spec}]"


def _read_row(job: Element) -> Row:
    letters = job.findtext("state") or ""
    limits = [request.text for request in job.findall("hard_request[@name='h_rt']")]
    queue = job.findtext("queue_name") or ""
    return Row(
        job_id=job.findtext("JB_job_number") or "",
        spec=job.findtext("tasks") or "",
        is_finished="z" in letters or job.get("state") == "zombie",
        state=read_letters(letters),
        start=_moment(job.findtext("JAT_start_time")),
        limit=read_seconds(limits[0] or "") if limits else None,
        node=queue.partition("@")[2] or None,
        follows=job.find("predecessor_jobs") is not None,
    )


def _moment(text: str | None) -> float | None:
    """A moment in this machine's time zone: 2026-03-01T09:30:00."""
    try:
        return time.mktime(time.strptime((text or "").partition(".")[0], "%Y-%m-%dT%H:%M:%S"))
    except (ValueError, OverflowError):
        return None
