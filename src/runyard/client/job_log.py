"""A job log in the columns of GNU parallel's `--joblog`: its rows, read and written.

Written by the command that watches a list on this machine, and by the agents of its jobs.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from runyard.errors import ConfigError

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


def exit_and_signal(code: int, cause: str | None) -> tuple[int, int]:
    """As GNU parallel has them. The server tells of signals as a shell does."""
    is_signal = code > _BY_SIGNAL and cause != "program"
    return (0, code - _BY_SIGNAL) if is_signal else (code, 0)


def append_lines(path: Path, lines: Sequence[str]) -> None:
    """For whoever holds the log's lock. Half a row that a killed writer left is cut off, and a new
    log begins with the names of its columns."""
    with path.open("ab+") as file:
        head = [] if _cut_off_piece(file) else ["\t".join(COLUMNS)]
        file.write("".join(f"{line}\n" for line in [*head, *lines]).encode())
        file.flush()
        os.fsync(file.fileno())


def _cut_off_piece(file: BinaryIO) -> int:
    """Leave whole lines alone; how many bytes these are."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 1))
    if file.read() in (b"", b"\n"):
        return size
    file.seek(0)
    return file.truncate(file.read().rfind(b"\n") + 1)


def read_rows(path: Path) -> list[Row]:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except FileNotFoundError:
        return []
    rows = []
    for place, line in enumerate(lines, start=1):
        # The last line of a log whose writer was killed may be a piece of one.
        if not line or line.startswith(f"{COLUMNS[0]}\t") or place == len(lines):
            continue
        rows.append(_read_row(path, place, line))
    return rows


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
