"""Posts of many runs in one change: the same is stored as by a change each, with less work."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runyard.server.history.history import EVENTS, HISTORY, read_rows
from runyard.server.store.database import Outcome, in_savepoint
from runyard.server.store.migrations import migrate
from runyard.server.tracking.appending import Arrived, record_all
from runyard.server.tracking.streams import Post, record
from runyard.server.tracking.upserts import Upsert, upsert

RUNS = ["plain", "resumed", "trial", "synced", "shared", "odd name\x00é"]
STORED = {
    "runs": "key, state, seen_client, preempting, exit_code, summary, heartbeat_at, ended_at",
    "clients": "*",
    "batches": "run, stream, start, stop",
    "lines": "*",
    "placements": "*",
    "revisions": "*",
}


def a_store() -> sqlite3.Connection:
    """A store with one run of each kind that posts may be for."""
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.row_factory = sqlite3.Row
    first_store().backup(db)
    db.execute("BEGIN")
    return db


@cache
def first_store() -> sqlite3.Connection:
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.row_factory = sqlite3.Row
    migrate(db)
    db.execute("INSERT INTO users (key, name, created_at) VALUES (1, 'ada', 0)")
    for name in RUNS:
        upsert(db, Upsert(id=name, entity="ada", project="birds", user=1, host="node1"), 0.0)
    again = Upsert(id="resumed", entity="ada", project="birds", user=1, host="node2")
    record(db, "ada", "birds", "resumed", rows(0, 3), 1.0)
    upsert(db, again, 2.0)
    db.execute("UPDATE runs SET sweep = 'abc' WHERE id = 'trial'")
    db.execute(
        "UPDATE clients SET kind = 'sync' WHERE run = (SELECT key FROM runs WHERE id = 'synced')"
    )
    db.execute(
        "UPDATE clients SET kind = 'shared', writer = 'w' "
        "WHERE run = (SELECT key FROM runs WHERE id = 'shared')"
    )
    return db


def rows(start: int, count: int, **more: Any) -> Post:
    lines = [json.dumps({"_step": start + number, "loss": 0.5}) for number in range(count)]
    return Post(rows={HISTORY: (start, lines)}, **more)


LINES = st.lists(
    st.sampled_from(['{"a": 1}', '{"a": 0.5, "b": {"c": null}}', '{"new": NaN}', "nonsense", "{}"]),
    max_size=3,
)
PARTS = st.tuples(st.integers(0, 6), LINES)
POSTS = st.builds(
    Post,
    rows=st.dictionaries(st.sampled_from([HISTORY, EVENTS]), PARTS),
    output=st.tuples(st.integers(0, 3), st.lists(st.sampled_from(["one", "two"]), max_size=2)),
    summary=st.sampled_from([None, None, '{"a": 2}']),
    preempting=st.sampled_from([False] * 9 + [True]),
    complete=st.sampled_from([False] * 9 + [True]),
    writer=st.sampled_from([""] * 9 + ["w"]),
)
ARRIVED = st.builds(
    Arrived, st.sampled_from([("ada", "birds", name) for name in [*RUNS, "unknown"]]), POSTS
)


def stored(db: sqlite3.Connection) -> dict[str, Any]:
    """All that posts change. Names of metrics may have other numbers."""
    questions = {table: f"SELECT {columns} FROM {table}" for table, columns in STORED.items()}
    tables: dict[str, Any] = {
        table: sorted((tuple(row) for row in db.execute(question)), key=repr)
        for table, question in questions.items()
    }
    tables["rows"] = [
        list(read_rows(db, 1 + number, stream))
        for number in range(len(RUNS))
        for stream in (HISTORY, EVENTS)
    ]
    return tables


def answers(outcomes: list[Outcome]) -> list[Any]:
    return [
        type(failure) if failure is not None else recorded and tuple(map(plain, recorded))
        for recorded, failure in outcomes
    ]


def plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, sqlite3.Row) else value


@settings(max_examples=100)
@given(st.lists(st.lists(ARRIVED, min_size=1, max_size=12), min_size=1, max_size=5))
def test_the_same_is_stored_as_by_one_after_the_other(batches: list[list[Arrived]]) -> None:
    together, apart = a_store(), a_store()
    for now, batch in enumerate(batches, 10):
        one_by_one = [
            in_savepoint(apart, partial(record_one, item=item, now=now)) for item in batch
        ]
        assert answers(record_all(together, batch, now)) == answers(one_by_one)
        assert stored(together) == stored(apart)


def record_one(db: sqlite3.Connection, item: Arrived, now: float) -> object:
    return record(db, *item.place, item.post, now)


def statements(db: sqlite3.Connection, work: Callable[[], object]) -> int:
    seen: list[str] = []
    db.set_trace_callback(seen.append)
    work()
    db.set_trace_callback(None)
    # A statement is traced again, with the same text, when a trigger of its has ended.
    return len({text for text in seen if not text.startswith("--")})


def test_a_hundred_runs_at_work_take_as_many_statements_as_one() -> None:
    db = a_store()
    places = [("ada", "birds", f"run{number}") for number in range(100)]
    for place in places:
        upsert(db, Upsert(id=place[2], entity="ada", project="birds", user=1, host="node1"), 0.0)
    begun = [Arrived(place, rows(0, 1)) for place in places]
    # What is there, the names of metrics, rows, where each client begins, signs of life.
    assert statements(db, lambda: record_all(db, begun, 1.0)) <= 9
    batch = [
        Arrived(place, rows(1, 1, summary=f'{{"loss": {number}, "ä": "\\u0000"}}'))
        for number, place in enumerate(places)
    ]
    # What is there, the names of metrics, rows, signs of life, summaries; and the savepoint.
    assert statements(db, lambda: record_all(db, batch, 2.0)) <= 7
    assert all(list(read_rows(db, 1 + len(RUNS) + number, HISTORY, 1)) for number in range(100))
    stored = [row[0] for row in db.execute("SELECT summary FROM runs WHERE id LIKE 'run%'")]
    assert stored == [item.post.summary for item in batch]


def test_a_name_that_goes_on_behind_a_nul_is_nobody_elses() -> None:
    db = a_store()
    names = ("plain", "resumed", "plain\0")
    batch = [Arrived(("ada", "birds", name), rows(3, 1)) for name in names]
    recorded: list[Outcome] = []
    together = statements(db, lambda: recorded.extend(record_all(db, batch, 1.0)))
    assert [outcome is not None for outcome, _ in recorded] == [True, True, False]
    db.execute("ROLLBACK")
    db.execute("BEGIN")
    one_by_one = statements(db, lambda: [record_one(db, item, 1.0) for item in batch])
    assert together < one_by_one


def test_one_post_that_cannot_be_stored_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from runyard.server.tracking import appending, streams

    def put_lines(db: object, run: int, stream: str, start: int, lines: list[str]) -> None:
        if "bad" in lines:
            raise RuntimeError("out of luck")

    for module in (appending, streams):
        monkeypatch.setattr(module, "put_lines", put_lines)
    db = a_store()
    for name in ("plain", "resumed"):
        record(db, "ada", "birds", name, rows(3, 1), 1.0)
    bad = Post(rows={HISTORY: (4, ['{"lost": 1}'])}, output=(0, ["bad"]))
    batch = [
        Arrived(("ada", "birds", "plain"), bad),
        Arrived(("ada", "birds", "resumed"), rows(4, 1)),
    ]
    (_, failure), (recorded, fine) = record_all(db, batch, 2.0)
    assert str(failure) == "out of luck"
    assert fine is None
    assert recorded is not None
    assert not any("lost" in text for _, text in read_rows(db, 1, HISTORY))
