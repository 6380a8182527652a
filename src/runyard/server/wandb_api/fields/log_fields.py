"""A run's console as GraphQL fields, line by line."""

from __future__ import annotations

import collections
import itertools
from sqlite3 import Connection

from runyard.server.processes import consoles
from runyard.server.wandb_api.graphql import pages
from runyard.server.wandb_api.graphql.inputs import Arguments
from runyard.server.wandb_api.graphql.request import Request, Source

_PAGE, _LARGEST_PAGE = 1_000, 10_000


def in_run(request: Request, run: int) -> Source:
    async def log_lines(arguments: Arguments) -> Source:
        if arguments.get("last") is not None:
            last = arguments.count("last", _PAGE, _LARGEST_PAGE)
            return await request.tracker.read(_tail, run, last)
        size = pages.page_size(arguments, usual=_PAGE, most=_LARGEST_PAGE)
        after = pages.cursor_number(arguments)
        begin = 0 if after is None else max(after + 1, 0)
        return await request.tracker.read(_page, run, begin, size)

    return {"logLines": log_lines, "logLineCount": request.reads(_count, run)}


def _page(db: Connection, run: int, begin: int, size: int) -> Source:
    # One more than is shown tells whether there are more.
    lines = enumerate(consoles.lines_of(db, run))
    shown = list(itertools.islice(lines, begin, begin + size + 1))
    return pages.page([_edge(*line) for line in shown], size)


def _tail(db: Connection, run: int, last: int) -> Source:
    lines = collections.deque(enumerate(consoles.lines_of(db, run)), maxlen=last)
    return pages.connection(_edge(*line) for line in lines)


def _count(db: Connection, run: int) -> int:
    return sum(1 for _ in consoles.lines_of(db, run))


def _edge(number: int, line: str) -> Source:
    level, time, text = consoles.split_line(line)
    node = {"number": number, "timestamp": time, "level": level, "label": "", "line": text}
    return pages.edge(number, node)
