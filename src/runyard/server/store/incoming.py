"""Bytes that arrive: written aside, brought to disk, and only then put in their place.

A file is there whole or not at all, whatever cuts the sender, this process or the power off.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import os
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import BinaryIO

_WRITE_AT_ONCE = 1 << 20


class WrongDigest(ValueError):
    """What arrived is not what was announced."""


class Incoming:
    """Receives files into places on the file system of `aside`, a folder of its own."""

    def __init__(self, aside: Path) -> None:
        self._folder = aside

    async def receive(
        self, chunks: AsyncIterator[bytes], path: Path, *, md5: str | None = None
    ) -> int:
        """Store what comes at `path`; returns its size. `md5`, in base64, must be that of it."""
        size, waiting = 0, bytearray()
        aside = _Aside(self._folder / secrets.token_hex(8))
        # Disk work happens beside the event loop: an fsync on a busy NFS can take seconds. For
        # a small file it is done in one go.
        try:
            async for chunk in chunks:
                waiting += chunk
                size += len(chunk)
                if len(waiting) >= _WRITE_AT_ONCE:
                    await asyncio.to_thread(aside.write, bytes(waiting))
                    waiting.clear()
            await asyncio.to_thread(aside.put_in_place, bytes(waiting), path, md5)
        finally:
            if not aside.is_gone:
                await asyncio.shield(asyncio.to_thread(aside.discard))
        return size

    def clear(self) -> None:
        """Remove what a dead server was receiving."""
        for path in self._folder.glob("*"):
            path.unlink(missing_ok=True)


class _Aside:
    """A file that is being written and has not got its place yet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._out: BinaryIO | None = None
        # As a check of what travelled, not as a secret.
        self._digest = hashlib.md5(usedforsecurity=False)
        self.is_gone = True

    def write(self, piece: bytes) -> None:
        if self._out is None:
            self._path.parent.mkdir(mode=0o700, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            self.is_gone = False
            self._out = os.fdopen(os.open(self._path, flags, 0o600), "wb")
        self._out.write(piece)
        self._digest.update(piece)

    def put_in_place(self, rest: bytes, path: Path, md5: str | None) -> None:
        try:
            self._put_in_place(rest, path, md5)
        except BaseException:
            self.discard()
            raise

    def _put_in_place(self, rest: bytes, path: Path, md5: str | None) -> None:
        self.write(rest)
        digest = base64.b64encode(self._digest.digest()).decode()
        if md5 is not None and digest != md5:
            raise WrongDigest(f"its MD5 is {digest}, and {md5} was announced")
        assert self._out is not None
        with self._out as out:
            out.flush()
            os.fsync(out.fileno())
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path.replace(path)
        self.is_gone = True
        # Without this a power cut can undo the renaming that the client was told of. Some network
        # file systems do not know it.
        folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
        with contextlib.suppress(OSError):
            os.fsync(folder)
        os.close(folder)

    def discard(self) -> None:
        if self._out is not None:
            with contextlib.suppress(OSError):  # Closing may write, and the disk be full.
                self._out.close()
        self._path.unlink(missing_ok=True)
