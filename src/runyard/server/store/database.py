"""SQLite behind one writer thread with group commit.

Every change goes through `write`: the writer thread takes all changes that wait, runs each in a
savepoint of its own, commits them together, and only then answers. One fsync serves many requests,
and a request that was answered is on disk. Reads run on threads with connections of their own.

All connections are in this one process, so the index of the write-ahead log is kept in its memory
(SQLite's VFS `unix-excl`) and not in a shared file: network file systems cannot share one. A
connection belongs to its thread and is lent to one function at a time; used anywhere else, it
raises.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import sqlite3
import threading
import urllib.parse
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, thread_time
from typing import Any, NamedTuple, TypeVar

from runyard.server.store.changes import Changes
from runyard.server.store.migrations import migrate, refuse_newer

# On the clock, and of the thread's computing.
Moment = tuple[float, float]


@dataclass
class Times:
    """Of one kind of change, in seconds.

    `longest_cpu` is the most that one change computed; the rest of a change's time it waits, for
    the disk or for other threads of the server. `longest_wait` is before its turn.
    """

    count: int = 0
    seconds: float = 0.0
    longest: float = 0.0
    longest_cpu: float = 0.0
    longest_wait: float = 0.0


class WriterTimes:
    """The writer measures, everybody may read."""

    def __init__(self) -> None:
        self._kinds: dict[str, Times] = {}

    def items(self) -> list[tuple[str, Times]]:
        """The kinds of changes by name, the one with the longest change first."""
        return sorted(self._kinds.copy().items(), key=lambda item: -item[1].longest)

    def note(self, kind: str, began: Moment, handed_in: float | None = None) -> None:
        """A change that began then has just ended. Costs little: every post is measured."""
        # Read inside out: nobody computes for longer than it takes.
        computed = thread_time() - began[1]
        seconds = perf_counter() - began[0]
        times = self._kinds.get(kind)
        if times is None:
            times = self._kinds[kind] = Times()
        times.count += 1
        times.seconds += seconds
        if seconds > times.longest:
            times.longest = seconds
        if computed > times.longest_cpu:
            times.longest_cpu = computed
        if handed_in is not None and began[0] - handed_in > times.longest_wait:
            times.longest_wait = began[0] - handed_in


def moment() -> Moment:
    return perf_counter(), thread_time()


log = logging.getLogger(__name__)

Result = TypeVar("Result")
Change = Callable[[sqlite3.Connection], Any]
Outcome = tuple[Any, BaseException | None]

# SQLite's integers end here.
LARGEST_KEY = 2**63 - 1

_READERS = 2
_MOST_AT_ONCE = 500
# SQLite's own default.
_LOG_PAGES = 1_000
# Of each connection, filled as it is needed. SQLite's own are 2 MB: the list of a project of five
# hundred runs would be read from the disk, or over the network, again for every question.
_CACHE_BYTES = min(
    max(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2048, 4 << 20), 32 << 20
)

# SQLite's own words; Python 3.10 has no error codes. A quota that is used up is an I/O error to it.
_NO_ROOM = ("database or disk is full", "disk I/O error")
_DISK_TROUBLE = (*_NO_ROOM, "readonly database", "unable to open", "malformed")


class DiskFull(Exception):
    """The change could not be stored; it may be sent again when there is room."""


class Closed(Exception):
    """The database was closed before the change was handed in."""


class TakesLong(Exception):
    """A question that would keep a thread from everybody's short ones; `plan` answers it."""


# Whether this thread answers short questions, which everybody's pages wait for.
_this_thread = threading.local()
# Rows with JSON that are read within a tenth of a second.
_MOST_TEXTS = 2_000


def is_for_short_questions() -> bool:
    return getattr(_this_thread, "is_for_short", False)


def must_be_short(texts: int) -> None:
    """To be called before the JSON of so many rows is read."""
    if texts > _MOST_TEXTS and is_for_short_questions():
        raise TakesLong


class _Task(NamedTuple):
    function: Change
    future: Future[Any]
    name: str
    since: float


_Queue = queue.SimpleQueue[_Task | None]


class Database:
    """The one SQLite database of a state folder. Start with `open`, end with `close`."""

    def __init__(self, path: Path, *, before_commit: Callable[[], None] = lambda: None) -> None:
        self._path = path
        self._before_commit = before_commit
        self._changes: _Queue = queue.SimpleQueue()
        self._questions: _Queue = queue.SimpleQueue()
        self._plans: _Queue = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write_on, name="writer", daemon=True)
        self._opened: Future[None] = Future()
        self._readers: list[tuple[threading.Thread, _Queue]] = []
        # Between those who hand in changes and the one who closes.
        self._door = threading.Lock()
        self._is_open = False
        self.changes = Changes()
        self.times = WriterTimes()

    def open(self) -> None:
        """Bring the schema up to date and start the writer."""
        self._writer.start()
        self._opened.result()
        for tasks in (*[self._questions] * _READERS, self._plans):
            thread = threading.Thread(target=self._read_on, args=(tasks,), name="reader")
            thread.daemon = True
            self._readers.append((thread, tasks))
            thread.start()
        self._is_open = True

    def close(self) -> None:
        """Finish every change that was handed in, then close."""
        with self._door:
            if not self._is_open:
                return
            self._is_open = False
            for _, tasks in self._readers:
                tasks.put(None)
        for thread, _ in self._readers:
            thread.join()
        # The writer last: who closes the last connection takes the write-ahead log along.
        self._changes.put(None)
        self._writer.join()

    def write(
        self, change: Callable[[sqlite3.Connection], Result], name: str = "other"
    ) -> Future[Result]:
        """Hand in a change. The future is done when it is on disk, or has failed as a whole.

        `name` is the kind of change under which the writer's time is counted.
        """
        return self._hand_in(self._changes, change, name)

    def read(self, question: Callable[[sqlite3.Connection], Result]) -> Future[Result]:
        return self._hand_in(self._questions, question)

    def plan(self, question: Callable[[sqlite3.Connection], Result]) -> Future[Result]:
        """Read what takes long, on a thread of its own: nobody's page waits for it."""
        return self._hand_in(self._plans, question)

    def read_apart(self, question: Callable[[sqlite3.Connection], Result]) -> Result:
        """Read in the caller's own thread, for as long as it takes.

        What the question reads first pins a moment: until it is answered, nothing goes from the
        write-ahead log to the database file, and the log only grows. It is worked off in this
        thread then: the next commit would do it otherwise, and everybody would wait.
        """
        connection = self._connect_to_read()
        self._work_off_log_at(0)
        try:
            result = _ask(connection, question)
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            return result
        finally:
            self._work_off_log_at(_LOG_PAGES)
            connection.close()

    def _work_off_log_at(self, pages: int) -> None:
        """How long the log gets before a commit works it off; 0: no commit does."""

        def set_length(connection: sqlite3.Connection) -> None:
            connection.execute(f"PRAGMA wal_autocheckpoint = {pages}")
            # Something is in the log then. An empty one could be begun anew beside a reader.
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            connection.execute(f"PRAGMA user_version = {int(version)}")

        self.write(set_length, "log").result()

    def _hand_in(
        self, tasks: _Queue, function: Callable[[sqlite3.Connection], Result], name: str = ""
    ) -> Future[Result]:
        future: Future[Result] = Future()
        with self._door:
            if self._is_open:
                tasks.put(_Task(function, future, name, perf_counter()))
            else:
                future.set_exception(Closed("the database is closed"))
        return future

    def _connect(self) -> sqlite3.Connection:
        place = f"file:{urllib.parse.quote(str(self._path))}?vfs=unix-excl"
        connection = sqlite3.connect(place, uri=True, isolation_level=None, timeout=30)
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_BYTES >> 10}")
        return connection

    def _connect_to_read(self) -> sqlite3.Connection:
        connection = self._connect()
        connection.execute("PRAGMA query_only = ON")
        return connection

    def _read_on(self, tasks: _Queue) -> None:
        connection = self._connect_to_read()
        _this_thread.is_for_short = tasks is self._questions
        while (task := tasks.get()) is not None:
            if not task.future.set_running_or_notify_cancel():
                continue
            try:
                task.future.set_result(_ask(connection, task.function))
            except BaseException as error:
                task.future.set_exception(error)
            del task  # What was asked may hold much, and the next question may be long in coming.
        connection.close()

    def _open_for_writing(self) -> None:
        self._connection = self._connect()
        try:
            # Before anything that could write: what a newer runyard made stays as it is.
            refuse_newer(self._connection)
            # Only a new database takes this: what is deleted can then be given back.
            self._connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            self._connection.execute("PRAGMA journal_mode = WAL").fetchone()
            migrate(self._connection)
            self.changes.attach(self._connection)
        except BaseException:
            self._connection.close()
            raise

    def _write_on(self) -> None:
        try:
            self._open_for_writing()
        except BaseException as error:
            self._opened.set_exception(error)
            return
        self._opened.set_result(None)
        running = True
        while running:
            batch = [self._changes.get()]
            while len(batch) < _MOST_AT_ONCE and not self._changes.empty():
                batch.append(self._changes.get())
            running = None not in batch
            # A change that its asker gave up before its turn is not made: nobody was told of it.
            tasks = [task for task in batch if task and task.future.set_running_or_notify_cancel()]
            if not tasks:
                continue
            outcomes = self._commit(tasks)
            for task, (result, failure) in zip(tasks, outcomes, strict=True):
                if failure is None:
                    task.future.set_result(result)
                else:
                    task.future.set_exception(failure)
            del batch, tasks, outcomes
        self._connection.close()

    def _commit(self, tasks: list[_Task]) -> list[Outcome]:
        """Make the changes in one transaction. Never raises: the writer has to outlive anything."""
        try:
            self._before_commit()
            self._connection.execute("BEGIN IMMEDIATE")
            outcomes = [self._run(task) for task in tasks]
            noted = self.changes.take(self._connection)
            began = moment()
            self._connection.execute("COMMIT")
            self.times.note("commit", began)
        except BaseException as error:
            self._recover()
            log.error("a commit of %d changes failed: %s", len(tasks), error)
            return [(None, _plainly(error)) for _ in tasks]
        self.changes.publish(noted)
        return outcomes

    def _run(self, task: _Task) -> Outcome:
        """One change in its savepoint: its own mistake undoes it alone."""
        began = moment()
        try:
            return in_savepoint(self._connection, task.function)
        finally:
            self.times.note(task.name, began, task.since)

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


def in_savepoint(connection: sqlite3.Connection, change: Change) -> Outcome:
    """Make a change, or undo it alone. Raises what is everybody's: the disk's trouble."""
    connection.execute("SAVEPOINT change")
    try:
        result = change(connection)
    except Exception as error:
        # SQLite may have undone the whole already.
        if _says(error, _DISK_TROUBLE) or not connection.in_transaction:
            raise
        connection.execute("ROLLBACK TO change")
        connection.execute("RELEASE change")
        return None, error
    connection.execute("RELEASE change")
    return result, None


def _ask(
    connection: sqlite3.Connection, question: Callable[[sqlite3.Connection], Result]
) -> Result:
    """All that one question reads is of one moment, whatever is written meanwhile."""
    connection.execute("BEGIN")
    try:
        return question(connection)
    finally:
        if connection.in_transaction:  # Trouble with the disk may have ended it.
            connection.execute("ROLLBACK")


def _says(error: BaseException, words: tuple[str, ...]) -> bool:
    return isinstance(error, sqlite3.Error) and any(word in str(error) for word in words)


def _plainly(error: BaseException) -> BaseException:
    return DiskFull(str(error)) if _says(error, _NO_ROOM) else error
