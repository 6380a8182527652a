"""Attempts: every call can be repeated, the process outweighs the client, the newest speaks."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest

from runyard.server.processes import attempts
from runyard.server.processes.attempts import append_console, begin, end, read_console
from runyard.server.runs import runs
from runyard.server.store.sql import Row
from runyard.server.tracking import streams, upserts
from runyard.server.tracking.streams import Post, mark_silent, record
from runyard.server.tracking.upserts import Upsert
from tests.server.memory import store_with_a_run

RUN = 1


@pytest.fixture
def store() -> Iterator[sqlite3.Connection]:
    """A store with one announced run."""
    connection = store_with_a_run()
    yield connection
    connection.close()


def _begin(store: sqlite3.Connection, token: str = "t1", now: float = 10.0) -> int:
    return begin(store, RUN, token=token, host="node1", pid=42, now=now)


def _post(store: sqlite3.Connection, now: float = 20.0, **said: Any) -> None:
    assert record(store, "ada", "birds", "run1", Post(**said), now)


def _client_starts(store: sqlite3.Connection, now: float = 15.0) -> None:
    said = Upsert(id="run1", entity="ada", project="birds", user=1, host="node1")
    upserts.upsert(store, said, now)


def _run(store: sqlite3.Connection) -> Row:
    row = runs.by_key(store, RUN)
    assert row is not None
    return row


def _state(store: sqlite3.Connection) -> tuple[str, int | None, float | None]:
    row = _run(store)
    return row["state"], row["exit_code"], row["ended_at"]


def _causes(store: sqlite3.Connection) -> list[str | None]:
    return [row["cause"] for row in attempts.of_run(store, RUN)]


def test_announcing_twice_is_announcing_once(store: sqlite3.Connection) -> None:
    new = {"id": "run1", "project": "birds", "command": ["other"]}
    again = runs.create_launched(store, new, entity="ada", user=1, now=2.0)
    assert (again["key"], again["command"]) == (RUN, '["python"]')


def test_beginning_twice_with_one_token_is_one_attempt(store: sqlite3.Connection) -> None:
    assert _state(store)[0] == "pending"
    assert _begin(store) == _begin(store, now=11.0) == 1
    assert _begin(store, "t2", now=12.0) == 2
    assert _state(store)[0] == "running"
    assert _run(store)["started_at"] == 10.0


def test_console_pieces_in_any_state_of_delivery(store: sqlite3.Connection) -> None:
    _begin(store)
    assert append_console(store, RUN, 1, 0, b"hello ", 11.0) == 6
    assert append_console(store, RUN, 1, 0, b"hello ", 12.0) == 6  # Sent again.
    assert append_console(store, RUN, 1, 2, b"llo world", 13.0) == 11  # Overlapping.
    assert append_console(store, RUN, 1, 11, b"", 14.0) == 11  # A mere sign of life.
    with pytest.raises(attempts.ConsoleGap) as gap:
        append_console(store, RUN, 1, 50, b"too far", 15.0)
    assert gap.value.stored == 11
    assert read_console(store, RUN, 0, 100) == (b"hello world", 11)
    assert _run(store)["heartbeat_at"] == 14.0


def test_the_console_of_all_attempts_in_a_row(store: sqlite3.Connection) -> None:
    for number, text in enumerate((b"one;", b"", b"three;"), 1):
        _begin(store, f"t{number}")
        append_console(store, RUN, number, 0, text, 11.0)
    assert read_console(store, RUN, 0, 100) == (b"one;three;", 10)
    assert read_console(store, RUN, 2, 4) == (b"e;th", 6)
    assert read_console(store, RUN, 6, 100) == (b"ree;", 10)
    assert read_console(store, RUN, 10, 100) == (b"", 10)
    assert read_console(store, RUN, 99, 100) == (b"", 99)


def test_the_end_outweighs_what_the_client_said(store: sqlite3.Connection) -> None:
    _begin(store)
    _client_starts(store)
    _post(store, complete=True, exit_code=0)
    assert _state(store) == ("running", None, None)  # It may go on after `finish()`.
    end(store, RUN, 1, exit_code=3, ended_at=30.0)
    assert _state(store) == ("failed", 3, 30.0)
    assert _causes(store) == ["exit code 3"]


def test_late_data_does_not_revive(store: sqlite3.Connection) -> None:
    _begin(store)
    _client_starts(store)
    end(store, RUN, 1, exit_code=-9, ended_at=30.0)
    _post(store, now=40.0, rows={0: (0, ["{}"])})
    _post(store, now=41.0, preempting=True)
    _post(store, now=42.0, complete=True, exit_code=0)
    append_console(store, RUN, 1, 0, b"last words", 43.0)
    assert _state(store) == ("crashed", 137, 30.0)
    assert read_console(store, RUN, 0, 100)[0] == b"last words"


def test_ending_twice_is_ending_once(store: sqlite3.Connection) -> None:
    _begin(store)
    end(store, RUN, 1, exit_code=0, ended_at=30.0)
    end(store, RUN, 1, exit_code=1, ended_at=31.0)
    assert _state(store) == ("finished", 0, 30.0)
    # The run went on since, with a client of its own: the repeated end is old news.
    said = Upsert(id="run1", entity="ada", project="birds", user=1, key=RUN, host="node2")
    upserts.upsert(store, said, 40.0)
    end(store, RUN, 1, exit_code=1, ended_at=31.0)
    assert _state(store) == ("running", None, None)


def test_an_older_attempt_does_not_speak_for_the_run(store: sqlite3.Connection) -> None:
    _begin(store)
    _begin(store, "t2", now=20.0)
    assert _causes(store) == ["lost", None]
    end(store, RUN, 1, exit_code=1, ended_at=25.0)
    assert _state(store)[0] == "running"
    append_console(store, RUN, 1, 0, b"late", 99.0)
    assert _run(store)["heartbeat_at"] == 20.0
    end(store, RUN, 2, exit_code=0, ended_at=30.0)
    assert _state(store) == ("finished", 0, 30.0)
    assert _causes(store) == ["exit code 1", "finished"]


def test_an_attempt_that_nobody_stands_beside_leaves_the_word_to_the_client(
    store: sqlite3.Connection,
) -> None:
    _begin(store)
    _client_starts(store)
    attempts.lose(store, RUN, 1, 25.0)
    assert _state(store)[0] == "running"
    _post(store, complete=True, exit_code=0)
    assert _state(store)[:2] == ("finished", 0)


def test_attempts_that_are_not_there(store: sqlite3.Connection) -> None:
    with pytest.raises(attempts.NoAttempt):
        append_console(store, RUN, 1, 0, b"x", 1.0)
    with pytest.raises(attempts.NoAttempt):
        end(store, RUN, 1, exit_code=0, ended_at=1.0)
    assert _state(store)[0] == "pending"


def test_silence_and_return(store: sqlite3.Connection) -> None:
    _begin(store, now=10.0)
    assert mark_silent(store, 10.0) == 0  # Heard at that very time.
    assert mark_silent(store, 11.0) == 1
    assert _state(store) == ("crashed", None, 10.0)
    assert _causes(store) == ["lost"]
    assert mark_silent(store, 11.0) == 0
    # It was only cut off: the process beside it sends on, and tells the end.
    append_console(store, RUN, 1, 0, b"I live", 50.0)
    assert _state(store) == ("running", None, None)
    assert _causes(store) == [None]
    mark_silent(store, 60.0)
    end(store, RUN, 1, exit_code=0, ended_at=70.0)
    assert _state(store) == ("finished", 0, 70.0)


def test_a_client_that_was_silent_returns(store: sqlite3.Connection) -> None:
    _client_starts(store, now=10.0)
    mark_silent(store, 20.0)
    _post(store, now=30.0)
    assert _state(store) == ("running", None, None)
    _post(store, now=31.0, preempting=True)
    mark_silent(store, 40.0)
    assert _state(store)[0] == "preempted"
    _post(store, now=50.0)
    assert _state(store) == ("preempting", None, None)
    _post(store, now=51.0, complete=True, exit_code=1)
    assert _state(store)[:2] == ("preempted", 1)
    _post(store, now=52.0)
    assert _state(store)[:2] == ("preempted", 1)  # That one was no guess.


def test_after_a_machine_died_a_client_elsewhere_can_end_the_run(store: sqlite3.Connection) -> None:
    _begin(store)
    _client_starts(store)
    mark_silent(store, 100.0)
    said = Upsert(id="run1", entity="ada", project="birds", user=1, key=RUN, host="node2")
    upserts.upsert(store, said, 200.0)
    _post(store, now=210.0, complete=True, exit_code=0)
    assert _state(store) == ("finished", 0, 210.0)


def test_runs_that_have_ended_do_not_fall_silent(store: sqlite3.Connection) -> None:
    _begin(store)
    end(store, RUN, 1, exit_code=0, ended_at=11.0)
    assert streams.mark_silent(store, 1e9) == 0
