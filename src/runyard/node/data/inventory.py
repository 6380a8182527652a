"""What lies below some paths, found by many hands at once.

On a shared file system every file that is looked at is a question to a server far away. Asked one
after the other, ten thousand of them are most of the time that staging takes; so threads ask many
at once, each for some hundred names.
"""

# A Path for each would be half of the time that a small file takes.

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

# They wait for the file system, not for a CPU.
_HANDS = 16
_NAMES_EACH = 128


class Entry(NamedTuple):
    """A file, folder or link below the root, as the archive names it."""

    path: str
    kind: str  # file, folder or link
    mode: int
    size: int
    changed: int  # nanoseconds
    target: str = ""


def scan(root: str, paths: Sequence[str]) -> list[Entry]:
    """Everything below the paths, sorted, with the folders on the way to them."""
    entries: dict[str, Entry] = {}
    for path in paths:
        parts = os.path.normpath(path).split(os.sep)
        for depth in range(1, len(parts)):
            above = "/".join(parts[:depth])
            entries[above] = _entry(above, os.stat(f"{root}/{above}"))
    with ThreadPoolExecutor(_HANDS) as hands:

        def look(names: list[str]) -> list[Entry]:
            return [entry for name in names for entry in _look_at(root, name)]

        def names_in(folder: str) -> list[str]:
            return [f"{folder}/{name}" for name in os.listdir(f"{root}/{folder}")]

        names = ["/".join(os.path.normpath(path).split(os.sep)) for path in paths]
        while names:
            some = [entry for part in hands.map(look, _cut(names)) for entry in part]
            entries.update((entry.path, entry) for entry in some)
            folders = [entry.path for entry in some if entry.kind == "folder"]
            names = [name for inside in hands.map(names_in, folders) for name in inside]
    return [entries[path] for path in sorted(entries)]


def fingerprint(entries: Iterable[Entry]) -> str:
    """Changes when a file was added, removed, written to, or got another mode."""
    return hashlib.sha256(json.dumps(list(entries)).encode()).hexdigest()[:32]


def _cut(names: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(names), _NAMES_EACH):
        yield names[start : start + _NAMES_EACH]


def _look_at(root: str, path: str) -> Iterator[Entry]:
    about = os.lstat(f"{root}/{path}")
    if stat.S_ISLNK(about.st_mode):
        yield _entry(path, about, os.readlink(f"{root}/{path}"))
    elif stat.S_ISDIR(about.st_mode) or stat.S_ISREG(about.st_mode):
        yield _entry(path, about)
    # Sockets and pipes are nothing to take along.


def _entry(path: str, about: os.stat_result, target: str = "") -> Entry:
    mode = stat.S_IMODE(about.st_mode)
    if stat.S_ISLNK(about.st_mode):
        return Entry(path, "link", mode, 0, about.st_mtime_ns, target)
    if stat.S_ISDIR(about.st_mode):
        # Its time changes with every file beside: the files themselves say what is new.
        return Entry(path, "folder", mode, 0, 0)
    return Entry(path, "file", mode, about.st_size, about.st_mtime_ns)
