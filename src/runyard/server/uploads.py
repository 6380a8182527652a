"""Files that clients upload: addresses that authorise themselves, and where the bytes lie.

The client sends no key with an upload, so the address carries a signature and an end. On disk a
file lies under a hash of its name: what a client calls it cannot lead out of its run's folder.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import json
import os
import secrets
import shutil
import time
from collections.abc import AsyncIterator, Container
from pathlib import Path
from typing import BinaryIO

_VALID_SECONDS = 24 * 3600
_LONGEST_NAME = 1024
_WRITE_AT_ONCE = 1 << 20


class UnsafeName(ValueError):
    """A file name that no well-behaved client sends."""


class BadAddress(ValueError):
    """An upload address that we did not hand out, or that has expired."""


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
    """Addresses for uploads, and the files behind them."""

    def __init__(self, folder: Path, secret: bytes) -> None:
        self._folder = folder
        self._secret = secret

    def url(self, base_url: str, run: int, name: str) -> str:
        claim = json.dumps([run, name, int(time.time()) + _VALID_SECONDS]).encode()
        token = base64.urlsafe_b64encode(self._sign(claim) + claim).decode().rstrip("=")
        return f"{base_url}/uploads/{token}"

    def read_token(self, token: str) -> tuple[int, str]:
        """The run and the file name that an address stands for."""
        try:
            raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
            signature, claim = raw[:32], raw[32:]
            if not hmac.compare_digest(signature, self._sign(claim)):
                raise ValueError("bad signature")
            run, name, end = json.loads(claim)
        except ValueError as error:
            raise BadAddress("this upload address was not handed out here") from error
        if end < time.time():
            raise BadAddress("this upload address has expired")
        return run, name

    def path(self, run: int, name: str) -> Path:
        return self._folder / str(run) / hashlib.sha256(name.encode()).hexdigest()

    async def receive(self, run: int, name: str, chunks: AsyncIterator[bytes]) -> int:
        """Store a file whole or not at all; returns its size."""
        size, waiting = 0, bytearray()
        # Disk work happens beside the event loop: an fsync on a busy NFS can take seconds.
        aside, out = await asyncio.to_thread(self._open_aside)
        try:
            async for chunk in chunks:
                waiting += chunk
                size += len(chunk)
                if len(waiting) >= _WRITE_AT_ONCE:
                    await asyncio.to_thread(out.write, bytes(waiting))
                    waiting.clear()
            await asyncio.to_thread(_put_in_place, out, bytes(waiting), aside, self.path(run, name))
        finally:
            # In place by now, it is no longer there; else it must not stay.
            await asyncio.shield(asyncio.to_thread(_discard, out, aside))
        return size

    def clear_unfinished(self) -> None:
        """Remove what uploads left that a dead server was receiving."""
        for path in self._unfinished.glob("*"):
            path.unlink(missing_ok=True)

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

    def _open_aside(self) -> tuple[Path, BinaryIO]:
        self._unfinished.mkdir(mode=0o700, exist_ok=True)
        aside = self._unfinished / secrets.token_hex(8)
        handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        return aside, os.fdopen(handle, "wb")

    @property
    def _unfinished(self) -> Path:
        # On the same file system as the files, and never the name of a run's folder.
        return self._folder / "unfinished"

    def _sign(self, claim: bytes) -> bytes:
        return hmac.digest(self._secret, claim, "sha256")


def _put_in_place(out: BinaryIO, rest: bytes, aside: Path, path: Path) -> None:
    with out:
        out.write(rest)
        out.flush()
        os.fsync(out.fileno())
    path.parent.mkdir(mode=0o700, exist_ok=True)
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
