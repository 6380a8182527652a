"""The schema goes forward, all or nothing, and never touches what a newer version made."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from runyard.errors import StateError
from runyard.server.store import migrations
from runyard.server.store.database import Database
from runyard.server.store.migrations import STEPS, migrate
from runyard.server.store.schema import process_tables
from runyard.version import __version__


def _schema(connection: sqlite3.Connection) -> list[tuple[str, ...]]:
    return connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name").fetchall()


def _version(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


@pytest.fixture
def connection(tmp_path: Path) -> sqlite3.Connection:
    return sqlite3.connect(tmp_path / "some.db", isolation_level=None)


def test_from_nothing_to_the_last_step(connection: sqlite3.Connection) -> None:
    migrate(connection)
    assert _version(connection) == len(STEPS)
    told = connection.execute("SELECT value FROM about WHERE name = 'version'").fetchone()[0]
    assert told == __version__
    connection.close()


def test_twice_changes_nothing(connection: sqlite3.Connection) -> None:
    migrate(connection)
    before, changes = _schema(connection), connection.total_changes
    migrate(connection)
    assert _schema(connection) == before
    assert connection.total_changes == changes
    connection.close()


def test_from_every_earlier_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schemas = []
    for known in range(1, len(STEPS) + 1):
        connection = sqlite3.connect(tmp_path / f"{known}.db", isolation_level=None)
        with monkeypatch.context() as earlier:
            earlier.setattr(migrations, "STEPS", STEPS[:known])
            migrate(connection)
        migrate(connection)
        schemas.append(_schema(connection))
        connection.close()
    assert all(schema == schemas[0] for schema in schemas)


def test_clients_of_before_have_no_key_that_tells_whose_a_post_is(
    connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        known = STEPS[: STEPS.index(process_tables.CAME_WITH)]
        earlier.setattr(migrations, "STEPS", known)
        migrate(connection)
    connection.execute(
        "INSERT INTO clients (run, number, kind, began_at, heard_at) VALUES (1, 1, 'live', 0, 0)"
    )
    migrate(connection)
    assert connection.execute("SELECT key_id, late FROM clients").fetchall() == [("", None)]
    connection.close()


def test_a_step_that_fails_leaves_the_old_version_whole(
    connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate(connection)
    before = _schema(connection)
    bad = "CREATE TABLE half (a);\nINSERT INTO nowhere VALUES (1);\n"
    monkeypatch.setattr(migrations, "STEPS", (*STEPS, bad))
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        migrate(connection)
    assert _schema(connection) == before
    assert _version(connection) == len(STEPS)
    assert not connection.in_transaction
    connection.close()


def test_a_statement_without_an_end_is_noticed(
    connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "STEPS", (*STEPS, "CREATE TABLE forgotten (a)"))
    with pytest.raises(ValueError, match="forgotten"):
        migrate(connection)
    assert _version(connection) == 0
    connection.close()


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_a_newer_database_is_refused_and_stays_as_it_is(tmp_path: Path, journal: str) -> None:
    path = tmp_path / "runyard.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA journal_mode = {journal}")
    migrate(connection)
    connection.execute("UPDATE about SET value = '9.8.7'")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StateError) as caught:
        Database(path).open()
    assert "9.8.7" in caught.value.what
    assert "99" in str(caught.value.said)
    assert "upgrade" in str(caught.value.mend)
    assert path.read_bytes() == before


def test_a_newer_database_that_does_not_say_its_version(tmp_path: Path) -> None:
    path = tmp_path / "runyard.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StateError, match="a newer runyard"):
        Database(path).open()
