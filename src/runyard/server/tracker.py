"""The tracker: what every route works on."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import sqlite3
import time
from collections.abc import Callable, Sequence
from sqlite3 import Connection

from runyard.errors import StateError
from runyard.home import Home, write_whole
from runyard.server.artifacts import artifact_deletion
from runyard.server.artifacts.blob_files import Blobs
from runyard.server.history.exporting.exports import HistoryExports
from runyard.server.history.joining import Joiner
from runyard.server.history.reading.project_keys import ProjectKeys
from runyard.server.history.reading.project_overview import ProjectOverviews
from runyard.server.jobs import jobs
from runyard.server.listing.field_memory import FieldMemory
from runyard.server.listing.run_lists import RunLists
from runyard.server.people.accounts import Accounts
from runyard.server.people.permissions import Caller
from runyard.server.runs.run_files import Uploads
from runyard.server.store.database import Database, DiskFull
from runyard.server.store.sql import Row
from runyard.server.store.store import Store, Vacuum
from runyard.server.sweeps.ledger import leases
from runyard.server.sweeps.serving.claim_queues import ClaimQueues
from runyard.server.tracking import deletion, leftovers, trash
from runyard.server.tracking.post_queue import PostQueue


class Tracker(Store):
    """One state folder, opened: the store, and what is kept in memory beside it."""

    def __init__(self, home: Home, *, before_commit: Callable[[], None] = lambda: None) -> None:
        self.home = home
        self.started_at = time.time()
        super().__init__(Database(home.database, before_commit=before_commit))
        self.changes = self._database.changes
        self.writer_times = self._database.times
        self.accounts = Accounts(self, self._database)
        self.url = ""
        """Where we serve, as the state folder has it."""
        self.note: str | None = None
        """What is worth telling of our start."""
        self.uploads = Uploads(home.files)
        self.blobs = Blobs(home.blobs)
        self.exports = HistoryExports(home.exports)
        self.posts = PostQueue(self)
        self.joiner = Joiner()
        self.vacuum = Vacuum()
        self.remembered = FieldMemory()
        self.run_lists = RunLists(self.changes, self.remembered)
        self.project_keys = ProjectKeys(self.changes)
        self.project_overviews = ProjectOverviews(self.changes)
        self.sweeps = ClaimQueues(self)
        # Jobs that are to be cancelled; while there are none, no claim has to look.
        self.open_wishes = 0

    def open(self, key: str, port: int | None = None) -> None:
        """Open the store and accept `key` as this user's."""
        try:
            self._database.open()
            self.accounts.open(key, port, _server_secret(self.home))
            self.uploads.clear_unfinished()
            self.blobs.clear_unfinished()
            self.exports.clear()
            self.uploads.clear_orphans(self._database.read(deletion.all_keys).result())
            self.take_in_leftovers()
            self.open_wishes = self._database.read(jobs.count_wishes).result()
            # While we were down nobody could renew a lease.
            now = time.time()
            self._database.write(lambda db: leases.extend_all(db, now)).result()
        except (sqlite3.Error, DiskFull) as error:
            self.close()
            raise _store_error(self.home, error) from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self.accounts.close()
        self._database.close()

    def take_in_leftovers(self) -> None:
        leftovers.take_in(self._database, self.home.spool, time.time())

    async def trash_runs(
        self, caller: Caller, keys: Sequence[int], *, with_artifacts: bool = False
    ) -> list[Row]:
        """Move runs to the trash. Artifacts, if they are to go, go at once."""

        def put(db: Connection) -> tuple[list[Row], list[tuple[str, str]]]:
            freed = list[tuple[str, str]]()
            for key in keys if with_artifacts else ():
                freed += artifact_deletion.delete_made_by(
                    db, key, lambda entity: self.accounts.may_write(caller, entity)
                )
            return trash.put(db, keys, caller.key, time.time()), freed

        rows, freed = await self.write(put)
        await self.blobs.free(self, freed)
        return rows

    async def empty_trash(self) -> None:
        """Delete for good what has lain in the trash for 30 days; looked at every hour."""
        while True:
            for key in await self.read(trash.expired, time.time()):
                await self.delete_for_good(key)
            await asyncio.sleep(3600)

    async def delete_run(self, caller: Caller, key: int, *, with_artifacts: bool = False) -> bool:
        """Delete a run: its rows, its files, its artifacts if wanted, and the room they took.

        Rows first, then files: cut short in between, the next start removes the files. What the run
        logged goes in slices before the run itself does; cut short there, it is shorter.
        """

        def delete(db: Connection) -> tuple[bool, list[tuple[str, str]]]:
            freed = (
                artifact_deletion.delete_made_by(
                    db, key, lambda entity: self.accounts.may_write(caller, entity)
                )
                if with_artifacts
                else []
            )
            return deletion.delete_run(db, key, time.time()), freed

        return await self._remove(key, delete)

    async def delete_for_good(self, key: int) -> bool:
        """The same for a run in the trash; its artifacts stay."""
        return await self._remove(key, lambda db: (deletion.delete_run(db, key, time.time()), []))

    async def _remove(
        self, key: int, delete: Callable[[Connection], tuple[bool, list[tuple[str, str]]]]
    ) -> bool:
        await self.transfer(key, deletion.Empty(key))
        was_there, freed = await self.write(delete)
        if was_there:
            await asyncio.to_thread(self.uploads.remove_run, key)
            self.vacuum.note()
        await self.blobs.free(self, freed)
        return was_there


def _server_secret(home: Home) -> bytes:
    # Kept over restarts: clients hold addresses that it signed.
    with contextlib.suppress(FileNotFoundError, ValueError):
        return bytes.fromhex(home.secret.read_text())
    secret = secrets.token_bytes(32)
    write_whole(home.secret, secret.hex())
    return secret


def _store_error(home: Home, error: Exception) -> StateError:
    text = str(error)
    if "full" in text or "disk I/O" in text:
        mend = "free some space on that disk, or set RUNYARD_HOME to a folder on another one"
    elif "malformed" in text or "not a database" in text:
        mend = f"move {home.database} aside (keep it: much can be recovered) and try again"
    else:
        mend = "set RUNYARD_HOME to another folder if this does not pass"
    return StateError(f"cannot open the database {home.database}", said=error, mend=mend)
