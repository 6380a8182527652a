"""Numbered lines: however batches come, each line is there once, with its newest text."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from runyard.server.processes.console_lines import count_lines, get_lines, put_lines
from runyard.server.store.database import Database
from tests.server.conftest import a_run
from tests.server.memory import empty_store

# Anything but a line feed; half of a surrogate pair is what JSON lets a client send.
_TEXT = st.text(st.characters(exclude_characters="\n"), max_size=4)
_BATCHES = st.lists(st.tuples(st.integers(0, 30), st.lists(_TEXT, max_size=8)), max_size=12)


@settings(max_examples=300)
@given(_BATCHES, st.integers(0, 40))
def test_any_sequence_of_batches_is_a_dictionary(
    batches: list[tuple[int, list[str]]], first: int
) -> None:
    connection = empty_store()
    model: dict[int, str] = {}
    for start, lines in [*batches, *batches[-2:]]:  # The last ones are sent again.
        put_lines(connection, 1, "history", start, lines)
        model |= dict(enumerate(lines, start))
    assert dict(get_lines(connection, 1, "history")) == model
    assert [number for number, _ in get_lines(connection, 1, "history")] == sorted(model)
    assert dict(get_lines(connection, 1, "history", first)) == {
        number: text for number, text in model.items() if number >= first
    }
    assert count_lines(connection, 1, "history") == max(model, default=-1) + 1
    connection.close()


def test_a_gap_counts_and_is_filled_later() -> None:
    connection = empty_store()
    put_lines(connection, 1, "history", 0, ["a"])
    put_lines(connection, 1, "history", 5, ["f"])
    assert count_lines(connection, 1, "history") == 6
    assert list(get_lines(connection, 1, "history")) == [(0, "a"), (5, "f")]
    put_lines(connection, 1, "history", 1, ["b", "c", "d", "e"])
    assert [text for _, text in get_lines(connection, 1, "history")] == list("abcdef")
    connection.close()


def test_streams_and_runs_do_not_mix() -> None:
    connection = empty_store()
    put_lines(connection, 1, "history", 0, ["a"])
    put_lines(connection, 1, "output", 0, ["b"])
    put_lines(connection, 2, "history", 0, ["c"])
    assert list(get_lines(connection, 1, "history")) == [(0, "a")]
    assert list(get_lines(connection, 1, "output")) == [(0, "b")]
    assert count_lines(connection, 2, "events") == 0
    connection.close()


def test_an_empty_line_is_a_line_and_an_empty_batch_is_nothing() -> None:
    connection = empty_store()
    put_lines(connection, 1, "output", 0, [])
    assert count_lines(connection, 1, "output") == 0
    put_lines(connection, 1, "output", 0, [""])
    put_lines(connection, 1, "output", 1, ["", "x"])
    assert list(get_lines(connection, 1, "output")) == [(0, ""), (1, ""), (2, "x")]
    connection.close()


def test_lines_are_in_the_file(tmp_path: Path, database: Database) -> None:
    key = a_run(database)
    database.write(lambda c: put_lines(c, key, "history", 0, ["a", "\ud800"])).result()
    found = database.read(lambda c: list(get_lines(c, key, "history"))).result()
    assert found == [(0, "a"), (1, "\ud800")]
