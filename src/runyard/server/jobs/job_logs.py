"""What a job printed, from the files that Slurm writes, where this machine sees them.

Paths come from whoever recorded the job, and the server reads with its owner's rights. So only jobs
of the state folder's owner are read, only plain files, and only such that belong to that user.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from runyard.log_files import LogPattern
from runyard.server.store.sql import Row

# Of long logs, so much from the end, in all files together; one file gets no less than the other.
_ENOUGH = 2 << 20
_LEAST = 16 << 10
# In one answer.
_PAGE = 1 << 20
# A line without an end that grows beyond this is told in pieces.
_LONGEST_LINE = 64 << 10
MOST_FILES = 200


@dataclass(frozen=True)
class Piece:
    """Lines that one task printed; `cut`: what was before them is left out, or is gone."""

    task: str
    text: str
    cut: bool = False


@dataclass
class Look:
    """What was found. `after` is what to give the next time; `unread` says why there is nothing."""

    tasks: list[str] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    after: dict[str, int] = field(default_factory=dict)
    more: bool = False
    hidden: int = 0
    unread: str | None = None


def read_logs(
    job: Row, after: Mapping[str, int], *, task: str | None = None, whole: bool = False
) -> Look:
    """New lines of all tasks, or of one. `after`: how far each task's file is known already.

    `whole` begins at the beginning, however long a log is.
    """
    if not job["log_pattern"]:
        return Look(unread="It was submitted without a log file.")
    pattern = LogPattern(job["log_pattern"], job["job_id"], job["name"], job["array"] is not None)
    files = pattern.find(task)
    if not files:
        return Look(after=dict(after), unread=_why_none(job, Path(job["log_pattern"]).parent))
    look = Look(tasks=list(files.values()), after=dict(after))
    chosen = _newest(files) if len(files) > MOST_FILES else files
    look.hidden = len(files) - len(chosen)
    share = max(_LEAST, _ENOUGH // len(chosen))
    is_over = job["ended_at"] is not None
    room = _PAGE
    for path, label in chosen.items():
        if room <= 0:
            look.more = True
            break
        try:
            room -= _read_file(look, path, label, None if whole else share, room, is_over)
        except OSError as error:
            look.unread = f"{path} cannot be read: {error.strerror}."
    return look


def _read_file(
    look: Look, path: Path, label: str, share: int | None, room: int, is_over: bool
) -> int:
    """Put new whole lines of a file into `look`; how many bytes."""
    # Opening a pipe would wait for whoever writes to it.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.getuid():
            raise PermissionError(0, "it is not a file of the server's user")
        known = look.after.get(label)
        # A file that became shorter was begun anew.
        was_begun_anew = known is not None and about.st_size < known
        at, cut = 0 if known is None or was_begun_anew else known, False
        if known is None and share is not None and about.st_size > share:
            at, cut = about.st_size - share, True
        file.seek(at)
        data = file.read(room)
    if cut:
        # Begins with the first whole line.
        begin = data.find(b"\n") + 1
        at, data = at + begin, data[begin:]
    is_rest = at + len(data) >= about.st_size
    if not (is_rest and is_over):
        lines = data[: data.rfind(b"\n") + 1]
        data = lines if lines or len(data) < _LONGEST_LINE else data
    look.after[label] = at + len(data)
    look.more = look.more or (not is_rest and bool(data))
    if data or cut:
        text = data.decode("utf-8", "replace")
        look.pieces.append(Piece(label, text, cut or was_begun_anew))
    return len(data)


def _newest(files: Mapping[Path, str]) -> dict[Path, str]:
    """Those that were written to last, in the order of the tasks."""
    times: dict[Path, float] = {}
    for path in files:
        with contextlib.suppress(OSError):
            times[path] = path.stat().st_mtime
    newest = set(sorted(times, key=lambda path: times[path])[-MOST_FILES:])
    return {path: label for path, label in files.items() if path in newest}


def _why_none(job: Row, folder: Path) -> str:
    if not folder.is_dir():
        return f"The server, on {socket.gethostname()}, does not see {folder}."
    if job["started_at"] is None:
        return "It has not started: its log begins with its first task."
    return f"There is no log in {folder}."
