"""One writer, group commit, and a writer thread that outlives whatever happens to it."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from pathlib import Path
from typing import Any

import pytest

from runyard.server.store.database import Closed, Database, DiskFull

Change = Callable[[sqlite3.Connection], Any]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "runyard.db")
    database.open()
    database.write(lambda c: c.execute("CREATE TABLE t (v UNIQUE) ")).result()
    yield database
    database.close()


def _insert(value: object) -> Change:
    return lambda connection: connection.execute("INSERT INTO t VALUES (?)", (value,)).rowcount


def _values(connection: sqlite3.Connection) -> list[Any]:
    return [row[0] for row in connection.execute("SELECT v FROM t ORDER BY rowid")]


class Busy:
    """Keeps the writer busy until told otherwise, and counts its commits."""

    def __init__(self, database: Database) -> None:
        self._free = threading.Event()
        self.commits = 0
        started = threading.Event()

        def hold(connection: sqlite3.Connection) -> None:
            connection.set_trace_callback(self._count)
            started.set()
            self._free.wait()

        self._held = database.write(hold)
        started.wait()

    def _count(self, statement: str) -> None:
        self.commits += statement == "COMMIT"

    def let_go(self) -> None:
        self._free.set()
        self._held.result()


def test_a_change_is_made_and_read_back(database: Database) -> None:
    assert database.write(_insert("a")).result() == 1
    assert database.read(_values).result() == ["a"]


def test_changes_that_wait_share_a_commit(database: Database) -> None:
    busy = Busy(database)
    waiting = [database.write(_insert(number)) for number in range(100)]
    busy.let_go()
    assert [future.result() for future in waiting] == [1] * 100
    assert busy.commits == 2  # The one that was held, and one for all the others.
    assert database.read(_values).result() == list(range(100))


def test_a_change_that_raises_undoes_itself_alone(database: Database) -> None:
    def half(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO t VALUES ('half')")
        raise KeyError("the change's own mistake")

    def wrong(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO t VALUES ('wrong')")
        connection.execute("INSERT INTO no_such_table VALUES (1)")

    busy = Busy(database)
    good, bad, worse, twice, last = (
        database.write(change) for change in (_insert("a"), half, wrong, _insert("a"), _insert("b"))
    )
    busy.let_go()
    assert good.result() == last.result() == 1
    with pytest.raises(KeyError):
        bad.result()
    with pytest.raises(sqlite3.OperationalError, match="no_such_table"):
        worse.result()
    with pytest.raises(sqlite3.IntegrityError):
        twice.result()
    assert database.read(_values).result() == ["a", "b"]


def test_what_was_answered_is_in_the_files(tmp_path: Path, database: Database) -> None:
    database.write(_insert("a")).result()
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in tmp_path.glob("runyard.db*"):
        shutil.copy(path, copy)
    other = sqlite3.connect(copy / "runyard.db")
    assert _values(other) == ["a"]
    other.close()


def test_no_other_process_gets_in(tmp_path: Path, database: Database) -> None:
    """Nor would it see the log's index, which is in our memory alone."""
    look = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('SELECT * FROM t')"
    other = subprocess.run(
        [sys.executable, "-c", look, str(tmp_path / "runyard.db")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "database is locked" in other.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runyard.db", "runyard.db-wal"]


def test_a_connection_stays_with_its_thread(database: Database) -> None:
    """One that leaves its function could make two threads wait for each other for good."""
    for lend in (database.write, database.read, database.plan):
        connection = lend(lambda connection: connection).result()
        with pytest.raises(sqlite3.ProgrammingError, match="thread"):
            connection.execute("SELECT 1")
        rows = lend(lambda connection: connection.execute("SELECT 1")).result()
        with pytest.raises(sqlite3.ProgrammingError, match="thread"):
            rows.fetchall()


def test_reading_cannot_write(tmp_path: Path) -> None:
    database = Database(tmp_path / "runyard.db")
    database.open()
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        database.read(lambda c: c.execute("CREATE TABLE t (v)")).result()
    database.close()


def test_closing_finishes_what_was_handed_in(tmp_path: Path, database: Database) -> None:
    busy = Busy(database)
    waiting = [database.write(_insert(number)) for number in range(1_200)]
    closing = threading.Thread(target=database.close)
    closing.start()
    busy.let_go()
    closing.join()
    assert [future.result() for future in waiting] == [1] * 1_200
    other = sqlite3.connect(tmp_path / "runyard.db")
    assert _values(other) == list(range(1_200))
    other.close()


def test_after_closing_a_change_is_refused_at_once(tmp_path: Path, database: Database) -> None:
    database.read(_values).result()
    database.close()
    with pytest.raises(Closed):
        database.write(_insert("late")).result(timeout=60)
    database.close()  # Once more does no harm.
    # Nobody holds the file any more: the last connection takes its helpers along.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runyard.db"]


def test_a_change_that_nobody_waits_for_any_more_is_not_made(database: Database) -> None:
    busy = Busy(database)
    given_up, kept = database.write(_insert("given up")), database.write(_insert("kept"))
    assert given_up.cancel()
    busy.let_go()
    kept.result()
    with pytest.raises(CancelledError):
        given_up.result()
    assert database.read(_values).result() == ["kept"]


def test_a_request_that_ends_while_its_change_is_made_harms_nobody(database: Database) -> None:
    async def give_up() -> None:
        free = threading.Event()
        change = database.write(lambda _: free.wait())
        waiting = asyncio.ensure_future(asyncio.wrap_future(change))
        await asyncio.sleep(0.05)
        waiting.cancel()
        await asyncio.sleep(0)
        free.set()

    asyncio.run(give_up())
    assert database.write(_insert("after")).result(timeout=60) == 1


@pytest.mark.parametrize("word", ["BEGIN", "COMMIT", "ROLLBACK"])
def test_the_writer_outlives_a_transaction_that_cannot(database: Database, word: str) -> None:
    words = {word, "COMMIT"}

    def forbid(connection: sqlite3.Connection) -> None:
        def decide(action: int, what: str | None, *_: object) -> int:
            forbidden = action == sqlite3.SQLITE_TRANSACTION and what in words
            return sqlite3.SQLITE_DENY if forbidden else sqlite3.SQLITE_OK

        connection.set_authorizer(decide)

    first = database.write(forbid)
    with pytest.raises(sqlite3.DatabaseError):
        first.result(timeout=60)
    second = database.write(_insert("lost"))
    if word == "ROLLBACK":  # The first failure already led to a fresh connection.
        assert second.result(timeout=60) == 1
        return
    with pytest.raises(sqlite3.DatabaseError):
        second.result(timeout=60)
    words.clear()
    assert database.write(_insert("kept")).result(timeout=60) == 1
    assert database.read(_values).result() == ["kept"]


def test_the_writer_outlives_a_change_that_ends_its_own_transaction(database: Database) -> None:
    with pytest.raises(sqlite3.OperationalError):
        database.write(lambda c: c.execute("ROLLBACK")).result(timeout=60)
    assert database.write(_insert("a")).result(timeout=60) == 1


def test_a_limit_is_met_and_lifted(database: Database) -> None:
    """SQLite's own limit on pages gives the very error of a full disk."""
    database.write(lambda c: c.execute("PRAGMA max_page_count = 40").fetchone()).result()
    busy = Busy(database)
    small = database.write(_insert("small"))
    large: list[Future[Any]] = [
        database.write(_insert(bytes([number]) * 100_000)) for number in range(5)
    ]
    busy.let_go()
    for future in (small, *large):  # One transaction: all of it, or nothing.
        with pytest.raises(DiskFull):
            future.result(timeout=60)
    assert database.read(_values).result() == []
    assert database.write(_insert("small")).result() == 1
    database.write(lambda c: c.execute("PRAGMA max_page_count = 100000").fetchone()).result()
    assert database.write(_insert(b"x" * 100_000)).result() == 1
    assert len(database.read(_values).result()) == 2


def test_many_threads_at_once(database: Database) -> None:
    def work(first: int) -> None:
        for number in range(first, first + 50):
            database.write(_insert(number)).result()
            database.read(_values).result()

    threads = [threading.Thread(target=work, args=(start,)) for start in range(0, 400, 50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(database.read(_values).result()) == list(range(400))


def test_a_question_sees_one_moment(tmp_path: Path) -> None:
    database = Database(tmp_path / "runyard.db")
    database.open()
    database.write(lambda c: c.execute("CREATE TABLE t (v UNIQUE) ")).result()
    database.write(_insert(1)).result()

    def ask_twice(connection: sqlite3.Connection) -> tuple[list[Any], list[Any]]:
        before = _values(connection)
        database.write(_insert(2)).result()
        return before, _values(connection)

    assert database.read(ask_twice).result() == ([1], [1])
    assert database.read(_values).result() == [1, 2]
    database.close()


def test_a_question_that_fails_leaves_the_next_one_alone(database: Database) -> None:
    def fail(connection: sqlite3.Connection) -> None:
        connection.execute("SELECT * FROM nowhere")

    for _ in range(4):
        with pytest.raises(sqlite3.OperationalError, match="nowhere"):
            database.read(fail).result()
    database.write(_insert(1)).result()
    assert [database.read(_values).result() for _ in range(4)] == [[1]] * 4


def test_the_writer_tells_what_takes_long(database: Database) -> None:
    def compute(_: sqlite3.Connection) -> None:
        end = time.thread_time() + 0.02
        while time.thread_time() < end:
            pass

    def rest(_: sqlite3.Connection) -> None:
        time.sleep(0.03)

    first, second = database.write(compute, "computing"), database.write(rest, "resting")
    first.result()
    second.result()
    times = dict(database.times.items())
    assert times["computing"].count == times["resting"].count == 1
    assert times["computing"].longest >= times["computing"].longest_cpu >= 0.02
    assert times["resting"].longest >= 0.03
    assert times["resting"].longest_cpu < 0.03
    assert times["resting"].longest_wait >= 0
    assert "commit" in times
