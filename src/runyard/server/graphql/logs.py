"""A run's console as GraphQL fields, line by line."""

from __future__ import annotations

import collections
import itertools
import sqlite3
from collections.abc import Mapping
from typing import Any

from runyard.server.consoles import split_line
from runyard.server.graphql.executor import Refusal, Source
from runyard.server.graphql.inputs import as_count, as_text
from runyard.server.graphql.lists import connection as as_connection
from runyard.server.graphql.request import Request
from runyard.server.store import clients

_PAGE, _LARGEST_PAGE = 1_000, 10_000


def in_run(request: Request, run: int) -> Source:
    async def log_lines(given: Mapping[str, Any]) -> Source:
        if given.get("last") is not None:
            last = as_count(given, "last", _PAGE, _LARGEST_PAGE)
            return await request.tracker.read(_tail, run, last)
        first = max(1, as_count(given, "first", _PAGE, _LARGEST_PAGE))
        return await request.tracker.read(_page, run, _read_cursor(given), first)

    async def log_line_count(_given: Mapping[str, Any]) -> int:
        return await request.tracker.read(_count, run)

    return {"logLines": log_lines, "logLineCount": log_line_count}


def _page(connection: sqlite3.Connection, run: int, begin: int, first: int) -> Source:
    # One more than is shown tells whether there are more.
    lines = enumerate(clients.console_lines(connection, run))
    found = list(itertools.islice(lines, begin, begin + first + 1))
    return as_connection(map(_node, found[:first]), more=len(found) > first)


def _tail(connection: sqlite3.Connection, run: int, last: int) -> Source:
    lines = collections.deque(enumerate(clients.console_lines(connection, run)), maxlen=last)
    return as_connection(map(_node, lines), more=False)


def _count(connection: sqlite3.Connection, run: int) -> int:
    return sum(1 for _ in clients.console_lines(connection, run))


def _node(numbered: tuple[int, str]) -> tuple[str, Source]:
    number, line = numbered
    level, time, text = split_line(line)
    node = {"number": number, "timestamp": time, "level": level, "label": "", "line": text}
    return str(number), node


def _read_cursor(given: Mapping[str, Any]) -> int:
    """The number of the first line behind a cursor."""
    text = as_text(given, "after")
    if not text:
        return 0
    if not text.isdecimal() or len(text) > 15:
        raise Refusal(f"{text[:60]!r} is not a cursor of ours")
    return int(text) + 1
