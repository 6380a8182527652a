"""Rows that move in slices: nobody waits for long, and nothing is lost in between."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runyard.server.history import archives, pieces
from runyard.server.history.archives import PutAside, Restart, Restore, Rewind
from runyard.server.history.forks import Fork
from runyard.server.history.history import HISTORY, put_rows, read_objects, stream_of
from runyard.server.history.joining import Join, join_batches
from runyard.server.history.merging import Merge
from runyard.server.store.database import Database
from runyard.server.store.store import Changed, Transfer, carry_out
from runyard.server.tracker import Tracker
from runyard.server.tracking import streams
from tests.server.asgi import Client
from tests.server.conftest import a_run
from tests.server.processes import REWIND, Process, run_of, steps_of

Rows = list[dict[str, Any]]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "MOST_VALUES", 30)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    database = Database(tmp_path_factory.mktemp("store") / "runyard.db")
    database.open()
    yield database
    database.close()


def rows_of(steps: range | list[int]) -> Rows:
    return [{"_step": step, "_timestamp": 1000.0 + step, "v": {"a": step / 4}} for step in steps]


def stored(connection: sqlite3.Connection, run: int, stream: int = HISTORY) -> Rows:
    return [row for _, row in read_objects(connection, run, stream) if isinstance(row, dict)]


def after(step: float) -> archives.Rule:
    return lambda steps, _times: steps > step


def lines_of(rows: Rows) -> list[str]:
    return [json.dumps(row) for row in rows]


class Undo(Exception):
    """Every example begins with an empty run."""


def in_empty_run(database: Database, check: Callable[[sqlite3.Connection, int], None]) -> None:
    def example(connection: sqlite3.Connection) -> None:
        connection.execute(
            "INSERT INTO users (key, name, created_at) VALUES (1, 'ada', 0) ON CONFLICT DO NOTHING"
        )
        connection.execute(
            "INSERT INTO projects (key, entity, name, created_at) VALUES (1, 'ada', 'birds', 0)"
        )
        for key in (1, 2):
            connection.execute(
                "INSERT INTO runs (key, id, project, user, name, state, created_at) "
                "VALUES (?, ?, 1, 1, 'r', 'running', 0)",
                (key, f"run{key}"),
            )
        check(connection, 1)
        raise Undo

    with pytest.raises(Undo):
        database.write(example).result()


def fill(connection: sqlite3.Connection, run: int, rows: Rows, cuts: list[int]) -> None:
    """In batches that end at these places; every other cut joins what has come so far."""
    start = 0
    for number, cut in enumerate([*sorted(cuts), len(rows)]):
        put_rows(connection, run, HISTORY, start, lines_of(rows[start:cut]))
        start = max(start, cut)
        if number % 2:
            while join_batches(connection, run, HISTORY):
                pass


def partly(connection: sqlite3.Connection, transfer: Transfer, slices: int) -> None:
    """A server that dies after some slices."""
    for _ in range(slices):
        part = transfer.plan(connection)
        if part is None:
            return
        part(connection)


steps = st.lists(st.integers(0, 60), max_size=60)
cuts = st.lists(st.integers(0, 60), max_size=6)


@settings(max_examples=60, deadline=None)
@given(steps, cuts, st.integers(-1, 60), st.integers(0, 8))
def test_what_a_rewind_takes_out_is_in_archives(
    store: Database, steps: list[int], cuts: list[int], last: int, slices: int
) -> None:
    def check(connection: sqlite3.Connection, run: int) -> None:
        rows = rows_of(steps)
        fill(connection, run, rows, [min(cut, len(rows)) for cut in cuts])
        partly(connection, PutAside(run, after(last), "rewound", 1.0), slices)
        kept = [row for row in rows if row["_step"] <= last]
        everything = stored(connection, run)
        for archive in archives.of_run(connection, run):
            everything += stored(connection, run, stream_of(archive["number"], HISTORY))
        assert sorted(map(json.dumps, everything)) == sorted(map(json.dumps, rows))
        carry_out(connection, Rewind(run, after(last), 2.0, keeps_own=False))
        assert stored(connection, run) == kept
        aside = archives.of_run(connection, run)
        assert sum(archive["steps"] for archive in aside) == len(rows) - len(kept)

    in_empty_run(store, check)


@settings(max_examples=60, deadline=None)
@given(steps, cuts, st.integers(-1, 60), st.integers(0, 8))
def test_a_fork_that_was_interrupted_goes_on(
    store: Database, steps: list[int], cuts: list[int], last: int, slices: int
) -> None:
    def check(connection: sqlite3.Connection, parent: int) -> None:
        rows = rows_of(steps)
        fill(connection, parent, rows, [min(cut, len(rows)) for cut in cuts])
        child, kept = 2, [row for row in rows if row["_step"] <= last]
        partly(connection, Fork(parent, child, last), slices)
        begun = stored(connection, child)
        assert begun == kept[: len(begun)]
        carry_out(connection, Fork(parent, child, last))
        assert stored(connection, child) == kept
        assert stored(connection, parent) == rows

    in_empty_run(store, check)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sets(st.integers(0, 40)), max_size=5), st.integers(0, 5), st.booleans())
def test_segments_merge_in_any_order_and_after_any_interruption(
    store: Database, brought: list[set[int]], slices: int, joins: bool
) -> None:
    def check(connection: sqlite3.Connection, run: int) -> None:
        known: set[int] = set()
        for steps in brought:
            merge = Merge(run, HISTORY, lines_of(rows_of(sorted(steps))))
            partly(connection, merge, slices)
            present = {row["_step"] for row in stored(connection, run)}
            assert known <= present <= known | steps
            carry_out(connection, Merge(run, HISTORY, lines_of(rows_of(sorted(steps)))))
            known |= steps
            assert stored(connection, run) == rows_of(sorted(known))
            while joins and join_batches(connection, run, HISTORY):
                pass

    in_empty_run(store, check)


@settings(max_examples=30, deadline=None)
@given(steps, cuts, st.sets(st.integers(0, 60)), st.integers(0, 5))
def test_an_archive_comes_back(
    store: Database, steps: list[int], cuts: list[int], since: set[int], slices: int
) -> None:
    def check(connection: sqlite3.Connection, run: int) -> None:
        rows = rows_of(sorted(set(steps)))
        fill(connection, run, rows, [min(cut, len(rows)) for cut in cuts])
        restart = Restart(run, 1.0)
        carry_out(connection, restart)
        assert stored(connection, run) == []
        if restart.number is None:
            return
        carry_out(connection, Merge(run, HISTORY, lines_of(rows_of(sorted(since)))))
        partly(connection, Restore(run, restart.number), slices)
        carry_out(connection, Restore(run, restart.number))
        assert stored(connection, run) == rows_of(sorted({*steps, *since}))
        assert archives.of_run(connection, run) == []

    in_empty_run(store, check)


def test_an_archive_comes_back_whole_though_a_rewind_put_some_of_it_aside(store: Database) -> None:
    """A trial's row that came back after a rewind is in the run and in the rewind's archive."""

    def check(connection: sqlite3.Connection, run: int) -> None:
        put_rows(connection, run, HISTORY, 0, lines_of(rows_of(range(10))))
        carry_out(connection, Rewind(run, after(4), 1.0, keeps_own=False))
        put_rows(connection, run, HISTORY, 5, lines_of(rows_of([5])))
        restart = Restart(run, 2.0)
        carry_out(connection, restart)
        put_rows(connection, run, HISTORY, 0, lines_of(rows_of([20])))
        assert restart.number is not None
        carry_out(connection, Restore(run, restart.number))
        assert stored(connection, run) == rows_of([*range(6), 20])

    in_empty_run(store, check)


@settings(max_examples=60, deadline=None)
@given(steps, cuts, st.integers(-1, 60), st.integers(0, 8))
def test_a_merge_knows_what_a_rewind_put_aside(
    store: Database, steps: list[int], cuts: list[int], last: int, slices: int
) -> None:
    def check(connection: sqlite3.Connection, run: int) -> None:
        rows = rows_of(sorted(set(steps)))
        fill(connection, run, rows, [min(cut, len(rows)) for cut in cuts])
        carry_out(connection, Rewind(run, after(last), 2.0, keeps_own=False))
        partly(connection, Merge(run, HISTORY, lines_of(rows)), slices)
        carry_out(connection, Merge(run, HISTORY, lines_of([*rows, *rows_of([99])])))
        kept = [row for row in rows if row["_step"] <= last]
        assert stored(connection, run) == [*kept, *rows_of([99])]

    in_empty_run(store, check)


def test_rows_that_say_nothing_keep_their_numbers(store: Database) -> None:
    """A line that is no object, or has neither step nor time, is a row all the same."""

    def check(connection: sqlite3.Connection, run: int) -> None:
        odd = ['"text"', '{"only": 1}', "not JSON"]
        put_rows(connection, run, HISTORY, 0, [*lines_of(rows_of([5])), *odd])
        carry_out(connection, Merge(run, HISTORY, lines_of(rows_of([1, 9]))))
        rows = [row for _, row in read_objects(connection, run, HISTORY)]
        assert rows == [*rows_of([1, 5]), '"text"', {"only": 1}, "not JSON", *rows_of([9])]

    in_empty_run(store, check)


def test_a_post_between_plan_and_slice_has_it_planned_again(database: Database) -> None:
    key = a_run(database)
    rows = rows_of(range(10))
    database.write(lambda c: put_rows(c, key, HISTORY, 0, lines_of(rows))).result()
    rewind = PutAside(key, after(4), "rewound", 1.0)
    part = database.plan(rewind.plan).result()
    assert part is not None
    late = lines_of(rows_of(range(8, 12)))
    database.write(lambda c: put_rows(c, key, HISTORY, 8, late)).result()
    with pytest.raises(Changed):
        database.write(part).result()
    rewind.restart()
    database.write(lambda c: carry_out(c, rewind)).result()
    assert database.read(lambda c: stored(c, key)).result() == rows[:5]
    kept = database.read(lambda c: stored(c, key, stream_of(1, HISTORY))).result()
    assert kept == rows_of(range(5, 12))


@pytest.fixture
def touched(tracker: Tracker, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows of the database each change has touched."""
    counts: list[int] = []
    write = tracker._database.write

    def counted(change: Callable[[sqlite3.Connection], Any], *names: str) -> Any:
        def count(connection: sqlite3.Connection) -> Any:
            before = connection.total_changes
            try:
                return change(connection)
            finally:
                counts.append(connection.total_changes - before)

        return write(count, *names)

    monkeypatch.setattr(tracker._database, "write", counted)
    return counts


def test_no_change_moves_a_whole_run(client: Client, tracker: Tracker, touched: list[int]) -> None:
    """Whether it is rewound, forked, synced, begun anew or deleted."""
    process = Process(client)
    opaque = process.start()["id"]
    for start in range(0, 1000, 10):
        process.log(start, range(start, start + 10))
    process.finish()
    tracker._database.write(lambda c: carry_out(c, Join(1))).result()
    touched.clear()
    child = Process(client, "child")
    child.start(internals={"branch_point": {"run_id": "run1", "step": 989}})
    assert steps_of(tracker, 2) == list(range(990))
    answer = client.graphql(
        REWIND,
        {"runName": "run1", "project": "birds", "metricName": "_step", "metricValue": 99},
    )
    assert "errors" not in answer, answer
    assert steps_of(tracker) == list(range(100))
    sync = child.synced()
    sync.start()
    sync.log(0, [995, 3])
    assert steps_of(tracker, 2) == sorted([*range(990), 3, 995])
    again = Process(client)
    again.start(id=opaque)
    again.finish()
    Process(client).start()
    assert run_of(client)["steps"] == 0
    assert client.request("DELETE", "/api/runs/2").status == 200
    assert len(touched) > 200
    assert max(touched) < 120


def test_a_long_post_is_stored_in_parts(
    client: Client, tracker: Tracker, touched: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "LARGEST_PART", 500)
    process = Process(client)
    process.start()
    for _ in range(2):  # Its answer was lost: sent again.
        process.log(0, range(100), complete=True, exitcode=3)
    assert steps_of(tracker) == list(range(100))
    assert run_of(client)["exit_code"] == 3
    assert len(touched) > 10
    assert max(touched) < 10


def test_a_summary_is_made_of_columns(database: Database) -> None:
    key = a_run(database)
    rows: Rows = [
        {"_step": 0, "a": {"b": 1, "c": 2}, "x": 3, "y": 5, "n": 2**70},
        {"_step": 1, "a": {"b": 2}, "x": 1.5, "m": {"_type": "image", "path": "p"}},
        {"_step": 2, "x": True, "t": "text"},
        {"_step": 3, "x": 9},
    ]
    asked = {"x": {"min": 0, "max": 0, "mean": 0, "first": 0, "last": 0}, "y": {"last": 0}}

    def change(connection: sqlite3.Connection) -> Any:
        put_rows(connection, key, HISTORY, 0, lines_of(rows[:2]))
        join_batches(connection, key, HISTORY)
        put_rows(connection, key, HISTORY, 2, lines_of(rows[2:]))
        connection.execute("UPDATE runs SET summary = ?", (json.dumps({**asked, "mine": 1}),))
        carry_out(connection, Rewind(key, after(2), 1.0, keeps_own=False))
        row = connection.execute("SELECT summary FROM runs WHERE key = ?", (key,)).fetchone()
        return json.loads(row["summary"])

    assert database.write(change).result() == {
        "_step": 2,
        "a": {"b": 2},
        "x": {"min": True, "max": 3, "mean": 5.5 / 3, "first": 3, "last": True},
        "y": {"last": 5},
        "n": 2**70,
        "m": {"_type": "image", "path": "p"},
        "t": "text",
    }
