"""The contents of artifacts on disk: each once an entity, in files that are whole or not there.

A file's name begins with the MD5 of what is in it and ends with something that never comes again.
So a file that is removed cannot be one that has just been put there.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from runyard.server.artifacts import artifact_deletion, blobs
from runyard.server.store.incoming import Incoming
from runyard.server.store.store import Store

log = logging.getLogger(__name__)

_AT_ONCE = 500
_SWEEP_EVERY = 24 * 3600.0
# Clients try again for a week; who has not come back by then does not.
_ABANDONED_AFTER = 8 * 24 * 3600.0


class Blobs:
    """The folder of contents."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._incoming = Incoming(folder / "unfinished")
        # Files that are in place, or will be, and that the database does not know of yet.
        self._arriving: set[str] = set()

    def path(self, file: str) -> Path:
        return self._folder / file

    async def receive(
        self, store: Store, entity: str, digest: str, chunks: AsyncIterator[bytes]
    ) -> None:
        """Store contents under their digest, if it is theirs."""
        md5 = base64.b64decode(digest).hex()
        owner = hashlib.sha256(entity.encode()).hexdigest()[:16]
        file = f"{owner}/{md5[:2]}/{md5}-{secrets.token_hex(6)}"
        self._arriving.add(file)
        try:
            size = await self._incoming.receive(chunks, self.path(file), md5=digest)
            if not await store.write(blobs.add, entity, digest, size, file):
                await asyncio.to_thread(self.path(file).unlink, missing_ok=True)
        finally:
            self._arriving.discard(file)

    def clear_unfinished(self) -> None:
        self._incoming.clear()

    async def free(self, store: Store, candidates: Sequence[tuple[str, str]]) -> int:
        """Remove those contents that nothing refers to any more; says how many."""
        freed = 0
        for start in range(0, len(candidates), _AT_ONCE):
            files = await store.write(blobs.forget_unneeded, candidates[start : start + _AT_ONCE])
            await asyncio.to_thread(self._remove, files)
            freed += len(files)
        return freed

    async def sweep(self, store: Store) -> int:
        """Remove what has expired, and what a killed server or an unfinished upload left behind."""
        await store.write(artifact_deletion.delete_abandoned, time.time() - _ABANDONED_AFTER)
        # Whatever they held is unneeded now, and goes with the rest.
        await store.write(artifact_deletion.delete_expired, time.time())
        swept, place = 0, ("", "")
        while some := await store.read(blobs.after, *place, _AT_ONCE):
            swept += await self.free(store, some)
            place = some[-1]
        for folder in await asyncio.to_thread(lambda: sorted(self._folder.glob("*/??"))):
            # Looked at in this order: what arrives meanwhile is in one of the two.
            paths = await asyncio.to_thread(list, folder.iterdir())
            files = [path.relative_to(self._folder).as_posix() for path in paths]
            settled = [file for file in files if file not in self._arriving]
            known = await store.read(blobs.known_files, settled)
            strangers = [file for file in settled if file not in known]
            await asyncio.to_thread(self._remove, strangers)
            swept += len(strangers)
        return swept

    async def keep_clean(self, store: Store) -> None:
        """Sweep when the server starts, and daily."""
        while True:
            try:
                swept = await self.sweep(store)
                if swept:
                    log.info("removed %d files of artifacts that nothing refers to", swept)
            except Exception:
                log.exception("could not sweep the contents of artifacts")
            await asyncio.sleep(_SWEEP_EVERY)

    def _remove(self, files: Sequence[str]) -> None:
        for file in files:
            self.path(file).unlink(missing_ok=True)
