"""The log of a list of command lines, in the columns of GNU parallel's `--joblog`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from runyard.client.api import Api
from runyard.client.sweeps import Sweep, Trial
from runyard.errors import ConfigError, RunyardError, UsageError
from runyard.locks import FolderLock
from runyard.search.tasks import COMMAND_LINE, NUMBER

COLUMNS = (
    "Seq",
    "Host",
    "Starttime",
    "JobRuntime",
    "Send",
    "Receive",
    "Exitval",
    "Signal",
    "Command",
)
_BY_SIGNAL = 128
_ENDED = ("finished", "failed", "stopped", "canceled")


@dataclass(frozen=True)
class Row:
    """How one execution went."""

    number: int
    host: str
    started_at: float
    seconds: float
    received: int
    exit_value: int
    signal: int
    command_line: str

    @property
    def key(self) -> tuple[int, str]:
        return self.number, f"{self.started_at:.3f}"

    @property
    def is_good(self) -> bool:
        return self.exit_value == 0 and self.signal == 0

    def __str__(self) -> str:
        cells = (
            self.number,
            self.host,
            f"{self.started_at:.3f}",
            f"{self.seconds:10.3f}",
            0,
            self.received,
            self.exit_value,
            self.signal,
            self.command_line,
        )
        return "\t".join(map(str, cells))


def job_log_of(sweep: Sweep, folder: str) -> Path:
    """Where a list has its log: as it was asked for, or beside its trials."""
    wanted = sweep["config"].get("runyard", {}).get("job_log")
    return Path(wanted) if wanted else Path(folder) / "sweeps" / sweep["id"] / "joblog"


def read_job_log(path: Path) -> dict[int, Row]:
    """The last row of each task; also of a log that GNU parallel wrote."""
    return {row.number: row for row in _rows(path)}


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


class JobLog:
    """Appends a row for every task that ends, whichever agent ran it; one writer at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = FolderLock(path)
        self.is_ours = self._lock.acquire()
        self._written = {row.key for row in _rows(path)} if self.is_ours else set()
        self._seen = set[tuple[int, int]]()
        self._told = set[tuple[int, int]]()
        self._before: tuple[object, ...] = ()
        if self.is_ours:
            _cut_off_piece(path)
        if self.is_ours and not path.stat().st_size:
            self._append("\t".join(COLUMNS))

    def look(self, api: Api, sweep: Sweep, *, is_last: bool) -> None:
        """Write down what has ended. Its output may be on its way still: that has one look's time
        to arrive."""
        now = (sweep["attempts"], *sorted(sweep["counts"].items()), len(self._seen - self._told))
        if not self.is_ours or (now == self._before and not is_last):
            return
        self._before = now
        ended = [
            one
            for one in api.sweeps.trials(sweep["key"])
            if one["state"] in _ENDED and one["attempts"] and one["ended_at"] is not None
        ]
        for trial in sorted(ended, key=lambda one: one["ended_at"] or 0.0):
            execution = (trial["number"], trial["attempts"])
            if execution in self._told:
                continue
            if execution in self._seen or is_last:
                self._write(api, trial)
                self._told.add(execution)
            self._seen.add(execution)

    def close(self) -> None:
        self._lock.release()

    def _write(self, api: Api, trial: Trial) -> None:
        row = row_of(api, trial)
        if row is not None and row.key not in self._written:
            self._written.add(row.key)
            self._append(str(row))

    def _append(self, line: str) -> None:
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{line}\n")
                file.flush()
                os.fsync(file.fileno())
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
    # The server tells of signals as a shell does.
    code = last["exit_code"] or 0
    signal = code - _BY_SIGNAL if code > _BY_SIGNAL and last["cause"] != "program" else 0
    values: Mapping[str, object] = trial["values"]
    return Row(
        number=int(str(values[NUMBER])),
        host=last["host"],
        started_at=last["started_at"],
        seconds=max(0.0, last["ended_at"] - last["started_at"]),
        received=last["console_bytes"],
        exit_value=0 if signal else code,
        signal=signal,
        command_line=str(values[COMMAND_LINE]),
    )


def _cut_off_piece(path: Path) -> None:
    """A writer that was killed may have left half a row: the next one is not written behind it."""
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)


def _rows(path: Path) -> list[Row]:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except FileNotFoundError:
        return []
    found = []
    for place, line in enumerate(lines, start=1):
        # The last line of a log whose writer was killed may be a piece of one.
        if not line or line.startswith(f"{COLUMNS[0]}\t") or place == len(lines):
            continue
        found.append(_read_row(path, place, line))
    return found


def _read_row(path: Path, place: int, line: str) -> Row:
    cells = line.split("\t", len(COLUMNS) - 1)
    try:
        number, host, start, seconds, _, received, exit_value, signal, command_line = cells
        return Row(
            int(number),
            host,
            float(start),
            float(seconds),
            int(received),
            int(exit_value),
            int(signal),
            command_line,
        )
    except ValueError:
        raise ConfigError(
            f"{path}:{place} is no line of a job log",
            said=line[:100],
            mend=f"its columns are {' '.join(COLUMNS)}, with tabs between; remove that line, or "
            "name another file",
        ) from None
