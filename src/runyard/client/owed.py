"""Runs that the server is owed: what a wandb client recorded without it.

A note in the run's folder says whose run it is, whether its program still runs, and which Python
has wandb. `wandb sync` itself marks what it has sent, with a file of its own beside the record.

A record can be anybody's: the Python that it names is run only if nobody else can have written
the name or the program.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from runyard.file_trust import is_ours_alone
from runyard.home import Home, write_whole

_NOTE = "owed.json"
# A record that nobody vouches for counts as finished when it was left alone for so long.
_QUIET_SECONDS = 120.0


@dataclass(frozen=True)
class Owed:
    """A note on one run."""

    run: str
    project: str | None = None
    entity: str | None = None
    host: str | None = None
    pid: int | None = None
    python: str | None = None
    # The client meant to send it, and the server was gone; or it has sent it to another one.
    online: bool = False
    elsewhere: bool = False
    ended_at: float | None = None
    synced_at: float | None = None

    def ended(self, when: float) -> Owed:
        return replace(self, ended_at=when)

    def synced(self, when: float) -> Owed:
        return replace(self, synced_at=when)


@dataclass(frozen=True)
class NamedPython:
    """The Python that a record names. `refusal`: why it is not run."""

    path: str
    refusal: str | None = None


@dataclass(frozen=True)
class Record:
    """What a client recorded of one run: the folder that `wandb sync` takes.

    `in_state_folder`: it is among the state folder's own runs, where only its owner can write.
    """

    folder: Path
    run: str
    note: Owed | None
    notes_folder: Path | None
    in_state_folder: bool = False

    @property
    def is_synced(self) -> bool:
        if self.note is not None and self.note.online and self.note.synced_at is not None:
            return True
        return any(self.folder.glob("*.synced"))

    @property
    def is_alive(self) -> bool:
        """Whether its program may still be writing."""
        if self.note is not None and self.note.ended_at is not None:
            return False
        if self.note is not None and self.note.pid and self.note.host == socket.gethostname():
            return _lives(self.note.pid)
        newest = max((path.stat().st_mtime for path in self.folder.glob("*.wandb")), default=0.0)
        return time.time() - newest < _QUIET_SECONDS

    @property
    def python(self) -> str | None:
        """The Python that wrote it, if it may be run."""
        named = self.named_python
        return named.path if named is not None and named.refusal is None else None

    @property
    def named_python(self) -> NamedPython | None:
        """The Python that wrote it, by the client's own word or by the command's looks."""
        for path in self.folder.rglob("wandb-metadata.json"):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                executable = json.loads(path.read_text()).get("executable")
                if isinstance(executable, str) and Path(executable).exists():
                    return NamedPython(executable, self._refusal(path, executable))
        if self.note is None or self.note.python is None or self.notes_folder is None:
            return None
        named = str(self.note.python)
        return NamedPython(named, self._refusal(self.notes_folder / _NOTE, named))

    def _refusal(self, file: Path, executable: str) -> str | None:
        """Why the program that this file names is not run."""
        if self.in_state_folder:
            return None if _is_own_file(file) else f"{file} is not a file of yours"
        if not is_ours_alone(file):
            return f"others can write {file}"
        if not is_ours_alone(Path(executable)):
            return f"others can write {executable}"
        return None

    def mark_synced(self) -> None:
        if self.note is not None and self.notes_folder is not None:
            with contextlib.suppress(OSError):
                write_owed(self.notes_folder, self.note.synced(time.time()))


def write_owed(folder: Path, note: Owed) -> None:
    write_whole(folder / _NOTE, json.dumps(asdict(note)))


def read_owed(folder: Path) -> Owed | None:
    try:
        note = json.loads((folder / _NOTE).read_text(encoding="utf-8"))
        names = {field.name for field in fields(Owed)}
        return Owed(**{name: value for name, value in note.items() if name in names})
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def find_records(home: Home, paths: Iterable[Path] = ()) -> Iterator[Record]:
    """Records in the state folder that are owed, synced or not; and all in these folders."""
    with contextlib.suppress(OSError):
        closed = home.path.resolve()
        for folder in sorted(home.runs.iterdir()):
            note = read_owed(folder)
            online = note is not None and note.online
            # A link may lead to a disk where others can write.
            is_inside = folder.resolve().is_relative_to(closed)
            yield from _records_in(folder, note, online=online, in_state_folder=is_inside)
    for path in paths:
        yield from _records_in(path, read_owed(path), online=True)


def _records_in(
    folder: Path, note: Owed | None, *, online: bool, in_state_folder: bool = False
) -> Iterator[Record]:
    for path in sorted({*folder.glob("*.wandb"), *folder.glob("*run-*/*.wandb"),
                        *folder.glob("wandb/*run-*/*.wandb")}):  # fmt: skip
        # `latest-run` and its like are links to one of the others.
        if path.parent.is_symlink() and path.parent != folder:
            continue
        if online or path.parent.name.startswith("offline-run-"):
            run = path.stem.removeprefix("run-")
            yield Record(path.parent, run, note, folder if note else None, in_state_folder)


def _is_own_file(path: Path) -> bool:
    status = path.lstat()
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return False  # The number is somebody else's now.
    return True
