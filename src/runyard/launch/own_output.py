"""The files that this command's own output goes to: they change while the project is copied."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

FileId = tuple[int, int]
"""Device and inode."""


def output_files() -> set[FileId]:
    """What standard output and error are written to, by this process or behind a pipe (`tee`)."""
    files, pipes = set[FileId](), set[FileId]()
    for descriptor in (1, 2):
        with contextlib.suppress(OSError):
            status = os.fstat(descriptor)
            if stat.S_ISREG(status.st_mode):
                files.add(_id(status))
            elif stat.S_ISFIFO(status.st_mode):
                pipes.add(_id(status))
    return files | _behind(pipes) if pipes else files


def _behind(pipes: set[FileId]) -> set[FileId]:
    """The files that are written by whoever reads these pipes, or what comes out behind them."""
    files, waiting = set[FileId](), _readers()
    while readers := [reader for reader in waiting if reader[0] in pipes]:
        for reader in readers:
            waiting.remove(reader)
            for status in _written(reader[1]):
                (pipes if stat.S_ISFIFO(status.st_mode) else files).add(_id(status))
    return files


def _readers() -> list[tuple[FileId, Path]]:
    """This user's other processes whose standard input is a pipe: which one, and where they are."""
    readers = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            status = (process / "fd" / "0").stat()
            if stat.S_ISFIFO(status.st_mode) and process.name != str(os.getpid()):
                readers.append((_id(status), process))
    return readers


def _written(process: Path) -> Iterator[os.stat_result]:
    """Pipes and files that a process has open for writing."""
    try:
        descriptors = list((process / "fd").iterdir())
    except OSError:
        return
    for descriptor in descriptors:
        with contextlib.suppress(OSError, ValueError, IndexError):
            text = (process / "fdinfo" / descriptor.name).read_text()
            flags = int(text.partition("flags:")[2].split()[0], 8)
            status = descriptor.stat()
            is_kind = stat.S_ISREG(status.st_mode) or stat.S_ISFIFO(status.st_mode)
            if is_kind and flags & os.O_ACCMODE != os.O_RDONLY:
                yield status


def _id(status: os.stat_result) -> FileId:
    return status.st_dev, status.st_ino
