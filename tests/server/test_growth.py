"""What must not grow with the server's age, its projects or its readers.

Work is counted, not timed.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from sqlite3 import Connection
from typing import Any

import pytest

from runyard.server.history.reading import project_keys
from runyard.server.listing import field_memory
from runyard.server.listing.field_paths import find_field
from runyard.server.runs.runs import new_name
from runyard.server.store import changes
from runyard.server.store import database as database_module
from runyard.server.store.changes import Kind
from runyard.server.store.database import Database
from runyard.server.tracker import Tracker
from tests.server.asgi import Answer, Client
from tests.server.conftest import Upsert, a_run
from tests.server.test_page_live import news, now

NEW = {"id": "run1", "project": "birds", "command": ["python"]}


def test_only_the_last_changes_are_remembered(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "_MOST_RECORDS", 10)
    begin = database.changes.revision
    keys = [a_run(database, f"run{number}") for number in range(4)]
    middle = database.changes.revision
    keys += [a_run(database, f"more{number}") for number in range(10)]
    assert max(map(len, database.changes._records.values())) == 10
    # Who asks from before reads everything; who asks from after gets each change.
    assert database.changes.since(begin, (Kind.RUN,)) is None
    recent = database.changes.since(middle, (Kind.RUN,))
    assert recent is not None
    assert [change.key for change in recent] == keys[:3:-1]
    # A kind of which nothing was forgotten is still known from the beginning.
    projects = database.changes.since(begin, (Kind.PROJECT,))
    assert projects is not None
    assert len(projects) == 1
    # Never older than it is: a forgotten change counts as one that may be new.
    assert database.changes.of_run(keys[0], (Kind.RUN,)) >= middle - 1
    assert database.changes.of_run(keys[-1], (Kind.RUN,)) == database.changes.revision


def test_a_page_that_slept_too_long_asks_for_everything(
    client: Client, upsert: Upsert, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "_MOST_RECORDS", 3)
    upsert(name="run0")
    begin = now(client)
    for number in range(1, 5):
        upsert(name=f"run{number}")
    assert news(client, begin)["whole"]
    columns = client.get("/api/projects/ada/birds/runs", since=begin).json()
    assert columns["whole"]
    assert len(columns["columns"]["key"]) == 5
    assert not client.get("/api/projects/ada/birds/runs", since=now(client)).json()["whole"]


def test_a_run_that_prints_nothing_is_not_read_again(
    client: Client, tracker: Tracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = client.post("/api/runs", NEW).json()["key"]
    client.post(f"/api/runs/{key}/attempts", {"token": "t", "host": "h", "pid": 7})
    questions = count_questions(tracker, monkeypatch)
    console = f"/api/runs/{key}/console"
    assert client.get(console, wait=0).json()["text"] == ""
    once = len(questions)
    questions.clear()
    assert client.get(console, wait=1.1).json()["text"] == ""
    assert len(questions) == once
    # What is printed meanwhile is told, and so is the end.
    for path, body, text, ended in (
        (f"/api/runs/{key}/attempts/1/console?offset=0", b"hello\n", "hello\n", False),
        (f"/api/runs/{key}/attempts/1/end", b'{"exit_code": 0, "ended_at": 12.5}', "", True),
    ):
        after = 0 if text else 6
        page, _ = client.together(
            client.exchange("GET", f"{console}?after={after}&wait=20"),
            _later(client, path, body),
        )
        assert (page.json()["text"], page.json()["ended"]) == (text, ended)


async def _later(client: Client, path: str, body: bytes) -> Answer:
    await asyncio.sleep(0.3)
    return await client.exchange("POST", path, [body])


def count_questions(tracker: Tracker, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Each question to the database from now on."""
    questions: list[str] = []
    read = tracker._database.read

    def counted(question: Any) -> Future[Any]:
        questions.append(str(question))
        return read(question)

    monkeypatch.setattr(tracker._database, "read", counted)
    return questions


@pytest.mark.parametrize(
    "path",
    [
        "/api/projects/ada/birds/keys",
        "/api/projects/ada/birds/runs?config=lr",
        "/api/projects/ada/birds/groups",
    ],
)
def test_a_large_project_that_is_read_for_the_first_time_keeps_nobody_waiting(
    client: Client, tracker: Tracker, upsert: Upsert, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Its texts are read, and stay unread, while the names and runs of another are answered."""
    monkeypatch.setattr(database_module, "_MOST_TEXTS", 3)
    for project, runs in (("birds", 5), ("fish", 2)):
        for number in range(runs):
            config = json.dumps({"lr": {"value": number}})
            upsert(name=f"run{number}", project=project, config=config)
    birds = client.get("/api/projects/ada/birds/runs").json()["columns"]["key"]
    began, may_end = threading.Event(), threading.Event()

    def held(texts: Any) -> Any:
        """Stands for a hundred thousand texts: reading those of birds ends when we say so."""

        def read(db: Connection, which: Any, *more: Any) -> Any:
            if which == 1 or set(birds) & set(which if isinstance(which, list) else ()):
                began.set()
                assert may_end.wait(30)
            return texts(db, which, *more)

        return read

    monkeypatch.setattr(project_keys, "_take_in", held(project_keys._take_in))
    monkeypatch.setattr(field_memory, "_read", held(field_memory._read))
    body = b'{"by": ["config.lr"]}'
    method = "POST" if path.endswith("groups") else "GET"

    async def others() -> list[Answer]:
        await asyncio.to_thread(began.wait, 30)
        try:
            return [
                await client.exchange("GET", "/api/projects/ada/fish/keys"),
                await client.exchange("GET", "/api/projects/ada/fish/runs?config=lr"),
            ]
        finally:
            may_end.set()

    async def all_at_once() -> list[Answer]:
        # As many as there are readers, and one more.
        texts = [body if method == "POST" else b""]
        questions = (client.exchange(method, path, texts) for _ in range(3))
        return list(await asyncio.gather(*questions))

    large, small = client.together(all_at_once(), others())
    assert [answer.status for answer in (*large, *small)] == [200] * 5
    assert len({answer.text for answer in large}) == 1


def test_values_of_fields_that_nobody_asks_for_are_dropped(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(field_memory, "_MOST_VALUES", 10)
    keys = [a_run(database, f"run{number}") for number in range(4)]
    memory = field_memory.FieldMemory()
    for name in ("config.a", "config.b", "config.c", "config.d"):
        read = partial(memory.values, revisions=dict.fromkeys(keys, 0), fields=[find_field(name)])
        database.read(read).result()
    assert sum(map(len, memory._known.values())) <= 10


def test_what_was_just_read_is_not_read_from_the_disk_again(database: Database) -> None:
    """More than SQLite keeps by itself. The kernel counts what one thread has read."""
    for number in range(30):
        key = a_run(database, f"run{number}")
        database.write(
            partial(_update, "UPDATE runs SET config = ? WHERE key = ?", ("x" * 100_000, key))
        ).result()

    def read(db: Connection) -> int:
        before = _bytes_read()
        db.execute("SELECT sum(length(config || name)) FROM runs").fetchone()
        return _bytes_read() - before

    first, second = (database.plan(read).result() for _ in range(2))
    assert first > 3_000_000
    assert second < 100_000


def _update(statement: str, values: tuple[object, ...], db: Connection) -> None:
    db.execute(statement, values)


def _bytes_read() -> int:
    counts = dict(
        line.split(": ") for line in Path("/proc/thread-self/io").read_text().splitlines()
    )
    return int(counts["rchar"])


def test_a_new_runs_name_costs_the_same_in_any_project(database: Database) -> None:
    """Steps of SQLite's machine, counted in tens."""

    def name(db: Connection) -> int:
        steps = itertools.count()
        db.set_progress_handler(lambda: next(steps) < 0, 10)
        new_name(db, 1)
        db.set_progress_handler(None, 0)
        return next(steps)

    a_run(database)
    few = database.write(name).result()
    for number in range(60):
        a_run(database, f"more{number}")
    assert database.write(name).result() == few


def test_the_number_in_a_runs_name_is_used_once(client: Client) -> None:
    def announce(run: str) -> str:
        name: str = client.post("/api/runs", NEW | {"id": run}).json()["name"]
        return name.rpartition("-")[2]

    assert [announce("run1"), announce("run2")] == ["1", "2"]
    client.request("DELETE", "/api/runs/1")
    assert announce("run3") == "3"
