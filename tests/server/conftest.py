"""A tracker over a state folder of its own, and a caller with its key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runyard.home import Home, prepare
from runyard.server.app import create_app
from runyard.server.store.database import Database
from runyard.server.tracker import Tracker
from tests.server.asgi import KEY, Client
from tests.server.persons import UPSERT, Person, add_person

Upsert = Callable[..., dict[str, Any]]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "state")
    prepare(home)
    return home


@pytest.fixture
def tracker(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tracker]:
    monkeypatch.setenv("LOGNAME", "ada")
    tracker = Tracker(home)
    tracker.open(KEY)
    yield tracker
    tracker.close()


@pytest.fixture
def client(tracker: Tracker) -> Iterator[Client]:
    client = Client(create_app(tracker, stop=lambda: None))
    yield client
    client.close()


@pytest.fixture
def upsert(client: Client) -> Upsert:
    """`upsertBucket`, with variables by name; answers the bucket and whether it was inserted."""

    def send(**variables: Any) -> dict[str, Any]:
        answer = client.graphql(UPSERT, {"project": "birds", "host": "node1", **variables})
        assert "errors" not in answer, answer
        found: dict[str, Any] = answer["data"]["upsertBucket"]
        return found

    return send


@pytest.fixture
def ada(client: Client) -> Person:
    """To whom the state folder belongs."""
    return Person(client, "ada", KEY)


@pytest.fixture
def bob(ada: Person) -> Person:
    return add_person(ada, "bob")


@pytest.fixture
def eve(ada: Person) -> Person:
    return add_person(ada, "eve")


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "runyard.db")
    database.open()
    yield database
    database.close()


def a_run(database: Database, run_id: str = "run1") -> int:
    """The key of a new run."""
    from runyard.server.tracking.upserts import Upsert, upsert

    said = Upsert(id=run_id, entity="ada", project="birds", user=1, host="node1")

    def change(connection: Any) -> int:
        connection.execute(
            "INSERT INTO users (key, name, created_at) VALUES (1, 'ada', 0) ON CONFLICT DO NOTHING"
        )
        key: int = upsert(connection, said, 0.0)[0]["key"]
        return key

    return database.write(change).result()
