"""Runs that the server is owed: what a wandb client recorded without it.

A note in the run's folder says whose run it is, whether its program still runs, and which Python
has wandb. `wandb sync` itself marks what it has sent, with a file of its own beside the record.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

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
class Record:
    """What a client recorded of one run: the folder that `wandb sync` takes."""

    folder: Path
    run: str
    note: Owed | None
    notes_folder: Path | None

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
        """The Python that wrote it, by the client's own word or by the command's looks."""
        for path in self.folder.rglob("wandb-metadata.json"):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                executable = json.loads(path.read_text()).get("executable")
                if isinstance(executable, str) and Path(executable).exists():
                    return executable
        return self.note.python if self.note else None

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
        for folder in sorted(home.runs.iterdir()):
            note = read_owed(folder)
            yield from _records_in(folder, note, online=note is not None and note.online)
    for path in paths:
        yield from _records_in(path, read_owed(path), online=True)


def _records_in(folder: Path, note: Owed | None, *, online: bool) -> Iterator[Record]:
    for path in sorted({*folder.glob("*.wandb"), *folder.glob("*run-*/*.wandb"),
                        *folder.glob("wandb/*run-*/*.wandb")}):  # fmt: skip
        # `latest-run` and its like are links to one of the others.
        if path.parent.is_symlink() and path.parent != folder:
            continue
        if online or path.parent.name.startswith("offline-run-"):
            yield Record(
                path.parent, path.stem.removeprefix("run-"), note, folder if note else None
            )


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return False  # The number is somebody else's now.
    return True
