"""SQLite behind one writer thread with group commit.

Every change goes through `write`: the writer thread takes all changes that wait, runs each in a
savepoint of its own, commits them together, and only then answers. One fsync serves many requests,
and a request that was answered is on disk. Reads run on threads with connections of their own;
where the folder is on a network file system, SQLite is opened exclusively instead (its shared
memory does not work there), and reads take their turn in the writer thread.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from runyard.server.store.changes import Changes
from runyard.server.store.migrations import migrate, refuse_newer

log = logging.getLogger(__name__)

Result = TypeVar("Result")
Change = Callable[[sqlite3.Connection], Any]
Outcome = tuple[Any, BaseException | None]

# SQLite's integers end here.
LARGEST_KEY = 2**63 - 1

_READERS = 2
_MOST_AT_ONCE = 500

# SQLite's own words; Python 3.10 has no error codes. A quota that is used up is an I/O error to it.
_NO_ROOM = ("database or disk is full", "disk I/O error")
_DISK_TROUBLE = (*_NO_ROOM, "readonly database", "unable to open", "malformed")


class DiskFull(Exception):
    """The change could not be stored; it may be sent again when there is room."""


class Closed(Exception):
    """The database was closed before the change was handed in."""


class Database:
    """The one SQLite database of a state folder. Start with `open`, end with `close`."""

    def __init__(self, path: Path, *, exclusive: bool = False) -> None:
        self._path = path
        self._exclusive = exclusive
        self._changes: queue.SimpleQueue[tuple[Change, Future[Any]] | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write_on, name="writer", daemon=True)
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="reader")
        self._local = threading.local()
        self._reading: list[sqlite3.Connection] = []
        # Between those who hand in changes and the one who closes.
        self._door = threading.Lock()
        self._is_open = False
        self.changes = Changes()

    def open(self) -> None:
        """Bring the schema up to date and start the writer."""
        self._connection = self._connect()
        try:
            # Before anything that could write: what a newer runyard made stays as it is.
            refuse_newer(self._connection)
            # Only a new database takes this: what is deleted can then be given back.
            self._connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            mode = self._connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            if mode != "wal" and not self._exclusive:
                log.warning("this file system cannot do WAL (%s): opened exclusively", mode)
                self._exclusive = True
                self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            migrate(self._connection)
            self.changes.attach(self._connection)
        except BaseException:
            self._connection.close()
            raise
        self._is_open = True
        self._writer.start()

    def close(self) -> None:
        """Finish every change that was handed in, then close."""
        with self._door:
            if not self._is_open:
                return
            self._is_open = False
            self._changes.put(None)
        self._writer.join()
        self._readers.shutdown()
        for connection in (*self._reading, self._connection):
            connection.close()

    def write(self, change: Callable[[sqlite3.Connection], Result]) -> Future[Result]:
        """Hand in a change. The future is done when it is on disk, or has failed as a whole."""
        future: Future[Result] = Future()
        with self._door:
            if self._is_open:
                self._changes.put((change, future))
            else:
                future.set_exception(Closed("the database is closed"))
        return future

    def read(self, question: Callable[[sqlite3.Connection], Result]) -> Future[Result]:
        if self._exclusive:
            return self.write(question)
        return self._readers.submit(self._ask, question)

    def _ask(self, question: Callable[[sqlite3.Connection], Result]) -> Result:
        """All that one question reads is of one moment, whatever is written meanwhile."""
        connection = self._reader()
        connection.execute("BEGIN")
        try:
            return question(connection)
        finally:
            if connection.in_transaction:  # Trouble with the disk may have ended it.
                connection.execute("ROLLBACK")

    def _reader(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._connect()
            connection.execute("PRAGMA query_only = ON")
            self._local.connection = connection
            self._reading.append(connection)
        return connection

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, isolation_level=None, check_same_thread=False, timeout=30
        )
        connection.row_factory = sqlite3.Row
        if self._exclusive:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    def _write_on(self) -> None:
        running = True
        while running:
            batch = [self._changes.get()]
            while len(batch) < _MOST_AT_ONCE and not self._changes.empty():
                batch.append(self._changes.get())
            running = None not in batch
            # A change that its asker gave up before its turn is not made: nobody was told of it.
            wanted = [item for item in batch if item and item[1].set_running_or_notify_cancel()]
            if not wanted:
                continue
            outcomes = self._commit([change for change, _ in wanted])
            for (_, future), (result, failure) in zip(wanted, outcomes, strict=True):
                if failure is None:
                    future.set_result(result)
                else:
                    future.set_exception(failure)

    def _commit(self, changes: list[Change]) -> list[Outcome]:
        """Make the changes in one transaction. Never raises: the writer has to outlive anything."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            outcomes = [self._run(change) for change in changes]
            self._connection.execute("COMMIT")
        except BaseException as error:
            self.changes.forget()
            self._recover()
            log.error("a commit of %d changes failed: %s", len(changes), error)
            return [(None, _plainly(error)) for _ in changes]
        self.changes.publish()
        return outcomes

    def _run(self, change: Change) -> Outcome:
        """One change in its savepoint: its own mistake undoes it alone."""
        connection = self._connection
        connection.execute("SAVEPOINT change")
        try:
            result = change(connection)
        except Exception as error:
            # The disk's trouble is everybody's, and SQLite may have undone the whole already.
            if _says(error, _DISK_TROUBLE) or not connection.in_transaction:
                raise
            connection.execute("ROLLBACK TO change")
            connection.execute("RELEASE change")
            return None, error
        connection.execute("RELEASE change")
        return result, None

    def _recover(self) -> None:
        """Leave no transaction open; with a fresh connection where the old one cannot."""
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            log.error("could not roll back, opening the database afresh: %s", error)
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
                self._connection = self._connect()
                self.changes.attach(self._connection)


def _says(error: BaseException, words: tuple[str, ...]) -> bool:
    return isinstance(error, sqlite3.Error) and any(word in str(error) for word in words)


def _plainly(error: BaseException) -> BaseException:
    return DiskFull(str(error)) if _says(error, _NO_ROOM) else error
