"""A run's rows for programs: everything it logged, or some metrics of it, page by page.

One JSON object a line, in Python's dialect: NaN and the infinities are bare words, as the client
sent them. `_row` is a row's number; the next page begins behind the last one. With `steps=1` the
rows that have any of the metrics come with their `_step`.
"""

from __future__ import annotations

import json
import sqlite3
from itertools import islice

from starlette.requests import Request
from starlette.responses import Response

from runyard.server.history.history import EVENTS, HISTORY, read_objects, stream_of
from runyard.server.history.reading.dotted_names import keys_of_names
from runyard.server.http import arguments
from runyard.server.http.access import readable_run, tracker_of
from runyard.server.http.answers import HttpError
from runyard.server.http.routes import LINES, Endpoints
from runyard.server.people.permissions import RUNS

api = Endpoints("runs")

_STREAMS = {"history": HISTORY, "system": EVENTS}
_PAGE = 5_000


@api.get(
    "/api/runs/{key:int}/rows",
    RUNS,
    query={"stream": str, "start": int, "metric": list[str], "archive": int, "steps": int},
    media=LINES,
)
async def rows(request: Request) -> Response:
    """What a run logged, row by row; with `steps=1` rows of some metrics with their `_step`."""
    run = await readable_run(request)
    query = request.query_params
    stream = query.get("stream", "history")
    if stream not in _STREAMS:
        raise HttpError(400, f"stream cannot be {stream!r}: it is history or system")
    text = await tracker_of(request).read(
        _page,
        run["key"],
        stream_of(arguments.number(request, "archive") or 0, _STREAMS[stream]),
        arguments.number(request, "start") or 0,
        query.getlist("metric"),
        with_steps=query.get("steps") == "1",
    )
    return Response(text, media_type="application/x-ndjson")


def _page(
    connection: sqlite3.Connection,
    run: int,
    stream: int,
    start: int,
    metrics: list[str],
    *,
    with_steps: bool = False,
) -> str:
    keys = None
    if metrics:
        names = [*metrics, *(["_step"] if with_steps else [])]
        keys = frozenset(keys_of_names(connection, run, stream, names).values())
    objects = read_objects(connection, run, stream, start, keys=keys)
    if metrics and with_steps:
        # Every row has a step; those that have nothing else are not asked for.
        objects = (
            each for each in objects if not isinstance(each[1], dict) or set(each[1]) - {"_step"}
        )
    lines = (
        json.dumps({"_row": number, **(row if isinstance(row, dict) else {"_raw": row})})
        for number, row in islice(objects, _PAGE)
    )
    return "".join(f"{line}\n" for line in lines)
