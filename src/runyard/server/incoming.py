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


class TooLarge(ValueError):
    """More arrived than there may be."""


class Incoming:
    """Receives files into places on the file system of `aside`, a folder of its own."""

    def __init__(self, aside: Path) -> None:
        self._aside = aside

    async def receive(
        self,
        chunks: AsyncIterator[bytes],
        path: Path,
        *,
        md5: str | None = None,
        most: int | None = None,
    ) -> int:
        """Store what comes at `path`; returns its size. `md5`, in base64, must be that of it."""
        size, waiting = 0, bytearray()
        # Disk work happens beside the event loop: an fsync on a busy NFS can take seconds.
        aside, out = await asyncio.to_thread(self._open_aside)
        # As a check of what travelled, not as a secret.
        digest = hashlib.md5(usedforsecurity=False) if md5 is not None else None

        def write(piece: bytes) -> None:
            out.write(piece)
            if digest is not None:
                digest.update(piece)

        try:
            async for chunk in chunks:
                waiting += chunk
                size += len(chunk)
                if most is not None and size > most:
                    raise TooLarge(f"it is larger than {most >> 20} MiB")
                if len(waiting) >= _WRITE_AT_ONCE:
                    await asyncio.to_thread(write, bytes(waiting))
                    waiting.clear()
            await asyncio.to_thread(write, bytes(waiting))
            if digest is not None:
                found = base64.b64encode(digest.digest()).decode()
                if found != md5:
                    raise WrongDigest(f"its MD5 is {found}, and {md5} was announced")
            await asyncio.to_thread(_put_in_place, out, aside, path)
        finally:
            # In place by now, it is no longer there; else it must not stay.
            await asyncio.shield(asyncio.to_thread(_discard, out, aside))
        return size

    def clear(self) -> None:
        """Remove what a dead server was receiving."""
        for path in self._aside.glob("*"):
            path.unlink(missing_ok=True)

    def _open_aside(self) -> tuple[Path, BinaryIO]:
        self._aside.mkdir(mode=0o700, exist_ok=True)
        aside = self._aside / secrets.token_hex(8)
        handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        return aside, os.fdopen(handle, "wb")


def _put_in_place(out: BinaryIO, aside: Path, path: Path) -> None:
    with out:
        out.flush()
        os.fsync(out.fileno())
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    aside.replace(path)
    # Without this a power cut can undo the renaming that the client was told of. Some network
    # file systems do not know it.
    folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    with contextlib.suppress(OSError):
        os.fsync(folder)
    os.close(folder)


def _discard(out: BinaryIO, aside: Path) -> None:
    with contextlib.suppress(OSError):  # Closing may write, and the disk be full.
        out.close()
    aside.unlink(missing_ok=True)
