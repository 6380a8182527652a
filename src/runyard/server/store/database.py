"""SQLite behind one writer thread with group commit.

Every change goes through `write`: the writer thread takes all changes that wait, runs each in a
savepoint of its own, commits them together, and only then answers. One fsync serves many requests,
and a request that was answered is on disk. Reads run on threads with connections of their own;
where the folder is on a network file system, SQLite is opened exclusively instead (its shared
memory does not work there), and reads take their turn in the writer thread.
"""

from __future__ import annotations

import logging
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from runyard.server.store.migrations import migrate

log = logging.getLogger(__name__)

Result = TypeVar("Result")
Change = Callable[[sqlite3.Connection], Any]

_READERS = 2
_MOST_AT_ONCE = 500


class DiskFull(Exception):
    """The change could not be stored; it may be sent again when there is room."""


class Database:
    """The one SQLite database of a state folder. Start with `open`, end with `close`."""

    def __init__(self, path: Path, *, exclusive: bool = False) -> None:
        self._path = path
        self._exclusive = exclusive
        self._changes: queue.SimpleQueue[tuple[Change, Future[Any]] | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write_on, name="writer", daemon=True)
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="reader")
        self._local = threading.local()
        self._connection = self._connect()

    def open(self) -> None:
        """Bring the schema up to date and start the writer."""
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        migrate(self._connection)
        self._writer.start()

    def close(self) -> None:
        """Finish every change that was handed in, then close."""
        if self._writer.is_alive():
            self._changes.put(None)
            self._writer.join()
        self._readers.shutdown()
        self._connection.close()

    def write(self, change: Callable[[sqlite3.Connection], Result]) -> Future[Result]:
        """Hand in a change. The future is done when it is on disk, or has failed as a whole."""
        future: Future[Result] = Future()
        self._changes.put((change, future))
        return future

    def read(self, question: Callable[[sqlite3.Connection], Result]) -> Future[Result]:
        if self._exclusive:
            return self.write(question)
        return self._readers.submit(lambda: question(self._reader()))

    def _reader(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._connect()
            connection.execute("PRAGMA query_only = ON")
            self._local.connection = connection
        return connection

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, isolation_level=None, check_same_thread=False, timeout=30
        )
        connection.row_factory = sqlite3.Row
        if self._exclusive:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA foreign_keys = ON")
        return connection

    def _write_on(self) -> None:
        running = True
        while running:
            batch = [self._changes.get()]
            while len(batch) < _MOST_AT_ONCE and not self._changes.empty():
                batch.append(self._changes.get())
            running = None not in batch
            self._commit([item for item in batch if item is not None])

    def _commit(self, batch: list[tuple[Change, Future[Any]]]) -> None:
        if not batch:
            return
        connection = self._connection
        outcomes: list[tuple[Future[Any], Any, BaseException | None]] = []
        try:
            connection.execute("BEGIN IMMEDIATE")
            for change, future in batch:
                outcomes.append((future, *self._run(change)))
            connection.execute("COMMIT")
        except BaseException as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            told = _plainly(error)
            log.error("a commit of %d changes failed: %s", len(batch), told)
            for _, future in batch:
                future.set_exception(told)
            return
        for future, result, failure in outcomes:
            if failure is None:
                future.set_result(result)
            else:
                future.set_exception(failure)

    def _run(self, change: Change) -> tuple[Any, BaseException | None]:
        """One change in its savepoint: its own mistake undoes it alone."""
        connection = self._connection
        connection.execute("SAVEPOINT change")
        try:
            result = change(connection)
        except sqlite3.OperationalError:
            raise  # The disk's trouble, not the change's: it fails the whole batch.
        except Exception as error:
            connection.execute("ROLLBACK TO change")
            connection.execute("RELEASE change")
            return None, error
        connection.execute("RELEASE change")
        return result, None


def _plainly(error: BaseException) -> BaseException:
    if isinstance(error, sqlite3.OperationalError) and (
        "full" in str(error) or "disk I/O" in str(error)
    ):
        return DiskFull(str(error))
    return error
