"""The console in pages: nothing lost or doubled where a page ends, not even inside a character."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runyard.server.processes import attempts
from runyard.server.processes.console_lines import put_lines
from runyard.server.processes.consoles import read_page
from tests.server.memory import store_with_a_run


@pytest.fixture
def store() -> Iterator[sqlite3.Connection]:
    connection = store_with_a_run()
    yield connection
    connection.close()


def _begin(store: sqlite3.Connection, data: bytes) -> None:
    number = attempts.begin(store, 1, token=str(data), host="h", pid=1, now=1.0)
    attempts.append_console(store, 1, number, 0, data, 2.0)


def _read(store: sqlite3.Connection, size: int) -> tuple[str, int, int]:
    """Every page until there is nothing new: the text, where it ends, how many pages."""
    text, after, pages = "", 0, 0
    while True:
        page = read_page(store, 1, after, size)
        text += page["text"]
        pages += 1
        if page["ended"] or page["next"] == after:
            return text, page["next"], pages
        after = page["next"]


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(4, 20), st.booleans())
def test_pages_make_the_whole(text: str, size: int, ended: bool) -> None:
    store = store_with_a_run()
    data = text.encode()
    _begin(store, data)
    if ended:
        attempts.end(store, 1, 1, exit_code=0, ended_at=3.0)
    assert _read(store, size)[:2] == (text, len(data))
    store.close()


def test_half_a_character_waits_for_the_other_half(store: sqlite3.Connection) -> None:
    bird = "🦜".encode()
    _begin(store, b"a" + bird[:2])
    page = read_page(store, 1, 0)
    assert page == {"text": "a", "next": 1, "ended": False}
    assert read_page(store, 1, 1)["text"] == ""
    attempts.append_console(store, 1, 1, 3, bird[2:], 2.0)
    assert read_page(store, 1, 1) == {"text": "🦜", "next": 5, "ended": False}


def test_half_a_character_at_the_very_end_is_shown_as_such(store: sqlite3.Connection) -> None:
    _begin(store, b"a\xf0\x9f")
    attempts.end(store, 1, 1, exit_code=0, ended_at=3.0)
    assert read_page(store, 1, 0) == {"text": "a\ufffd", "next": 3, "ended": True}


def test_bytes_that_are_no_text_do_not_stop_it(store: sqlite3.Connection) -> None:
    _begin(store, b"\xff\x00\xfe" * 10)
    attempts.end(store, 1, 1, exit_code=0, ended_at=3.0)
    text, end, _ = _read(store, 4)
    assert text.replace("\ufffd", "?") == "?\x00?" * 10
    assert end == 30


def test_a_page_that_ends_with_the_console(store: sqlite3.Connection) -> None:
    _begin(store, b"12345678")
    attempts.end(store, 1, 1, exit_code=0, ended_at=3.0)
    first = read_page(store, 1, 0, 8)
    assert first == {"text": "12345678", "next": 8, "ended": False}
    assert read_page(store, 1, 8, 8) == {"text": "", "next": 8, "ended": True}


def test_what_a_client_sent_comes_in_pages_too(store: sqlite3.Connection) -> None:
    put_lines(store, 1, "output", 0, [f"line {number}" for number in range(10)])
    put_lines(store, 1, "output", 20, ["line 20"])  # A gap is passed over.
    text, end, pages = _read(store, 15)
    assert text.split() == [word for n in (*range(10), 20) for word in ("line", str(n))]
    assert end == 21
    assert pages > 3


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("2026-01-02T03:04:05.678901 hello", "hello"),
        ("ERROR 2026-01-02T03:04:05.678901 oh no", "oh no"),
        ("2026-01-02T03:04:05.678901 ", ""),
        ("hello world", "hello world"),
        ("ERROR hello", "ERROR hello"),
        ("2026-01-02 hello", "2026-01-02 hello"),
        ("", ""),
    ],
)
def test_the_clients_own_stamp_is_left_out(
    store: sqlite3.Connection, line: str, shown: str
) -> None:
    put_lines(store, 1, "output", 0, [line])
    assert read_page(store, 1, 0)["text"] == f"{shown}\n"
