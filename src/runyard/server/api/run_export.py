"""A run as it was sent: what another server of W&B's protocol needs to have the same."""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections.abc import Iterator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from runyard.server.history.history import EVENTS, HISTORY, STREAMS, count_rows, read_rows
from runyard.server.http import arguments
from runyard.server.http.access import readable_run
from runyard.server.http.answers import HttpError, answer
from runyard.server.http.routes import Endpoints
from runyard.server.people.permissions import RUNS
from runyard.server.processes.consoles import lines_of
from runyard.server.store.sql import Row
from runyard.server.tracker import Tracker
from runyard.shapes.runs import Lines, Record

api = Endpoints("runs")

_PAGE_LINES, _PAGE_BYTES = 5_000, 4 << 20
_COLUMNS = (
    "id", "name", "entity", "state", "exit_code", "config", "summary", "notes", "group",
    "job_type", "host", "program", "commit_hash", "repo",
)  # fmt: skip


@api.get("/api/runs/{key:int}/record", RUNS, answer=Record)
async def record(request: Request) -> Response:
    """A run as its client sent it."""
    row = await readable_run(request)
    tracker: Tracker = request.app.state.tracker
    return answer(await tracker.read(_record, row))


@api.get("/api/runs/{key:int}/lines/{stream}", RUNS, query={"after": int}, answer=Lines)
async def lines(request: Request) -> Response:
    """Lines of a stream as they came.

    Up to a limit, or the next gap.
    """
    row = await readable_run(request)
    stream = request.path_params["stream"]
    if stream not in (*STREAMS, "output"):
        raise HttpError(404, f"there is no stream {stream!r}")
    after = arguments.number(request, "after") or 0
    tracker: Tracker = request.app.state.tracker
    return answer(await tracker.read(_page, row["key"], stream, after))


def _record(connection: sqlite3.Connection, row: Row) -> dict[str, Any]:
    key = row["key"]
    files = connection.execute(
        "SELECT name, size FROM files WHERE run = ? ORDER BY name", (key,)
    ).fetchall()
    return {
        **{name: row[name] for name in _COLUMNS},
        "project": row["project_name"],
        "tags": json.loads(row["tags"]),
        "lines": {
            "history": count_rows(connection, key, HISTORY),
            "events": count_rows(connection, key, EVENTS),
            "output": sum(1 for _ in lines_of(connection, key)),
        },
        "files": [{"name": file["name"], "size": file["size"]} for file in files],
    }


def _page(connection: sqlite3.Connection, run: int, stream: str, after: int) -> dict[str, Any]:
    start, taken, size = None, list[str](), 0
    # A bound, so that a long history is not unpacked whole for each of its pages.
    for number, line in _read(connection, run, stream, after):
        start = number if start is None else start
        if number != start + len(taken) or len(taken) >= _PAGE_LINES or size >= _PAGE_BYTES:
            break
        taken.append(line)
        size += len(line)
    return {"start": after if start is None else start, "lines": taken}


def _read(
    connection: sqlite3.Connection, run: int, stream: str, after: int
) -> Iterator[tuple[int, str]]:
    if stream == "output":
        return itertools.islice(enumerate(lines_of(connection, run)), after, None)
    number = STREAMS[stream]
    near = read_rows(connection, run, number, after, after + _PAGE_LINES)
    first = next(near, None)
    if first is None:  # A gap, or the end.
        return read_rows(connection, run, number, after)
    return itertools.chain([first], near)
