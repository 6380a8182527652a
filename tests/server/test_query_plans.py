"""What is asked often is answered by an index, however many runs and batches there are."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from runyard.server.people import api_keys
from runyard.server.people.permissions import Entities
from runyard.server.processes import attempts
from runyard.server.processes.console_lines import count_lines, get_lines, put_lines
from runyard.server.runs import runs
from runyard.server.sweeps.ledger import claims, leases, results, sweeps, trials
from runyard.server.sweeps.policy.rules import Rules
from runyard.server.tracking import streams
from tests.server.memory import Question, empty_store, full_scans


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    connection = empty_store()
    yield connection
    connection.close()


@pytest.mark.parametrize(
    "question",
    [
        pytest.param(lambda c: count_lines(c, 1, "history"), id="count_lines"),
        pytest.param(lambda c: list(get_lines(c, 1, "output", 5)), id="get_lines"),
        pytest.param(lambda c: put_lines(c, 1, "history", 3, ["a"]), id="put_lines"),
        pytest.param(lambda c: runs.by_path(c, "ada", "birds", "run1"), id="by_path"),
        pytest.param(lambda c: runs.by_words(c, "birds/run"), id="by_words"),
        pytest.param(lambda c: runs.by_words(c, "run"), id="by_words alone"),
        pytest.param(lambda c: runs.find_announced(c, "run1", 1), id="find_announced"),
        pytest.param(lambda c: api_keys.run_of(c, "0123456789ab"), id="run_of"),
        pytest.param(lambda c: attempts.last(c, 1), id="last attempt"),
        pytest.param(lambda c: attempts.read_console(c, 1, 0, 10), id="read_console"),
        pytest.param(lambda c: streams.mark_silent(c, 1.0), id="mark_silent"),
        pytest.param(lambda c: runs.count_of(c, None), id="count runs"),
        pytest.param(lambda c: leases.are_silent(c, 1.0), id="lost leases"),
        pytest.param(lambda c: leases.lose_silent(c, 1.0), id="losing leases"),
        pytest.param(lambda c: trials.by_run(c, 1), id="trial of a run"),
        pytest.param(lambda c: trials.at_work(c, 1), id="trials of an agent"),
        pytest.param(lambda c: trials.best(c, 1), id="best trial"),
        pytest.param(lambda c: trials.is_taken(c, 1, "lr1"), id="name of a trial"),
        pytest.param(lambda c: sweeps.counts(c, 1), id="counts of a sweep"),
        pytest.param(lambda c: claims._waiting(c, 1, 5), id="waiting trials"),
        pytest.param(lambda c: results._open(c, 1, Rules(seeds=3)), id="open settings"),
        pytest.param(lambda c: sweeps.open_counts(c, 1), id="counts of what is open"),
    ],
)
def test_no_table_is_scanned(connection: sqlite3.Connection, question: Question) -> None:
    assert full_scans(connection, question) == []


@pytest.mark.parametrize("entities", [None, Entities(frozenset({"ada"}))])
def test_how_many_are_alive_is_asked_of_those_alone(
    connection: sqlite3.Connection, entities: Entities | None
) -> None:
    asked: list[str] = []
    connection.set_trace_callback(asked.append)
    runs.count_of(connection, entities)
    connection.set_trace_callback(None)
    (question,) = (statement for statement in asked if "'running'" in statement)
    plan = [step["detail"] for step in connection.execute(f"EXPLAIN QUERY PLAN {question}")]
    assert any("COVERING INDEX runs_alive" in step for step in plan), plan


def test_a_batch_is_put_without_looking_at_all_that_came_before(
    connection: sqlite3.Connection,
) -> None:
    for number in range(2_000):
        put_lines(connection, 1, "history", number, ["x"])
    work = 0

    def count() -> int:
        nonlocal work
        work += 1
        return 0

    connection.set_progress_handler(count, 1)
    put_lines(connection, 1, "history", 2_000, ["x"])
    count_lines(connection, 1, "history")
    connection.set_progress_handler(None, 1)
    assert work < 300  # SQLite's own instructions; a look at every batch takes ten thousand.
