"""The log of a list of command lines that is watched here (`client/job_log` has its rows)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from runyard.client.api import Api
from runyard.client.job_log import Row, append_lines, exit_and_signal, read_rows
from runyard.errors import RunyardError, UsageError
from runyard.locks import FolderLock
from runyard.search.tasks import COMMAND_LINE, NUMBER
from runyard.shapes.sweeps import Sweep, Trial
from runyard.vocabulary import ENDED_STATES


def job_log_of(sweep: Sweep, folder: str) -> Path:
    """Where a list has its log: as it was asked for, or beside its trials."""
    wanted = sweep["config"].get("runyard", {}).get("job_log")
    return Path(wanted) if wanted else Path(folder) / "sweeps" / sweep["id"] / "joblog"


def read_job_log(path: Path) -> dict[int, Row]:
    """The last row of each task; also of a log that GNU parallel wrote."""
    return {row.number: row for row in read_rows(path)}


def refuse_used_log(path: Path) -> None:
    """A log of something else is not written to by mistake."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder", mend=f"--joblog {path}/joblog")
    if path.exists() and path.stat().st_size:
        raise UsageError(
            f"there is a job log {path} already",
            mend="--resume runs what is not in it, --resume-failed also what failed; or name "
            "another file",
        )


def open_log(path: Path) -> JobLog:
    """The job log to write to, which nobody else writes to."""
    log = JobLog(path)
    if not log.is_ours:
        raise UsageError(
            f"another command writes to the job log {path}",
            mend="name another file with --joblog, or wait until that one has ended",
        )
    return log


class JobLog:
    """Appends a row for every task that ends, whichever agent ran it; one writer at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = FolderLock(path)
        self.is_ours = self._lock.acquire()
        self._written = {row.key for row in read_rows(path)} if self.is_ours else set()
        self._seen = set[tuple[int, int]]()
        self._logged = set[tuple[int, int]]()
        self._before: tuple[object, ...] = ()
        if self.is_ours:
            self._append()

    def look(self, api: Api, sweep: Sweep, *, is_last: bool) -> None:
        """Write down what has ended. Its output may be on its way still: that has one look's time
        to arrive."""
        now = (sweep["attempts"], *sorted(sweep["counts"].items()), len(self._seen - self._logged))
        if not self.is_ours or (now == self._before and not is_last):
            return
        self._before = now
        ended = [
            trial
            for trial in api.sweeps.trials(sweep["key"])
            if trial["state"] in ENDED_STATES
            and trial["attempts"]
            and trial["ended_at"] is not None
        ]
        for trial in sorted(ended, key=lambda trial: trial["ended_at"] or 0.0):
            execution = (trial["number"], trial["attempts"])
            if execution in self._logged:
                continue
            if execution in self._seen or is_last:
                self._write(api, trial)
                self._logged.add(execution)
            self._seen.add(execution)

    def close(self) -> None:
        self._lock.release()

    def _write(self, api: Api, trial: Trial) -> None:
        row = row_of(api, trial)
        if row is not None and row.key not in self._written:
            self._written.add(row.key)
            self._append(str(row))

    def _append(self, *lines: str) -> None:
        try:
            append_lines(self._path, lines)
        except OSError as error:
            raise RunyardError(
                f"the job log {self._path} cannot be written", said=error.strerror
            ) from error


def row_of(api: Api, trial: Trial) -> Row | None:
    """The last execution of a task; None where its run is gone."""
    try:
        attempts = api.run(trial["id"])["attempts"]
    except RunyardError:
        return None
    last = attempts[-1] if attempts else None
    if last is None or last["ended_at"] is None:
        return None
    exit_value, signal = exit_and_signal(last["exit_code"] or 0, last["cause"])
    values: Mapping[str, object] = trial["values"]
    return Row(
        number=int(str(values[NUMBER])),
        host=last["host"],
        started_at=last["started_at"],
        seconds=max(0.0, last["ended_at"] - last["started_at"]),
        received=last["console_bytes"],
        exit_value=exit_value,
        signal=signal,
        command_line=str(values[COMMAND_LINE]),
    )
