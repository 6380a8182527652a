"""Files that clients upload, and where they lie.

On disk a file lies under a hash of its name: what a client calls it cannot lead out of its run's
folder.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import AsyncIterator, Container
from pathlib import Path

from runyard.server.store.incoming import Incoming

_LONGEST_NAME = 1024


class UnsafeName(ValueError):
    """A file name that no well-behaved client sends."""


def check_name(name: str) -> None:
    parts = name.split("/")
    if (
        not name
        or len(name.encode(errors="replace")) > _LONGEST_NAME
        or name.startswith("/")
        or any(part in ("", ".", "..") for part in parts)
        or any(ord(letter) < 32 or 0xD800 <= ord(letter) < 0xE000 for letter in name)
    ):
        raise UnsafeName(f"{name[:100]!r} cannot be the name of a run's file")


class Uploads:
    """The files of runs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # On the same file system as the files, and never the name of a run's folder.
        self._incoming = Incoming(folder / "unfinished")

    def path(self, run: int, name: str) -> Path:
        return self._folder / str(run) / hashlib.sha256(name.encode()).hexdigest()

    async def receive(self, run: int, name: str, chunks: AsyncIterator[bytes]) -> int:
        """Store a file whole or not at all; returns its size."""
        return await self._incoming.receive(chunks, self.path(run, name))

    def clear_unfinished(self) -> None:
        """Remove what uploads left that a dead server was receiving."""
        self._incoming.clear()

    def remove(self, run: int, name: str) -> None:
        self.path(run, name).unlink(missing_ok=True)

    def remove_run(self, run: int) -> None:
        """Every file of a run. What cannot be removed now goes at the next start."""
        shutil.rmtree(self._folder / str(run), ignore_errors=True)

    def clear_orphans(self, known: Container[int]) -> None:
        """Remove the files of runs that are deleted."""
        for path in self._folder.iterdir():
            if path.name.isdecimal() and int(path.name) not in known:
                self.remove_run(int(path.name))
