"""A run's rows for programs: everything it logged, or some metrics of it, page by page.

One JSON object a line, in Python's dialect: NaN and the infinities are bare words, as the client
sent them. `_row` is a row's number; the next page begins behind the last one.
"""

from __future__ import annotations

import json
import sqlite3
from itertools import islice

from starlette.requests import Request
from starlette.responses import Response

from runyard.server.history import archives
from runyard.server.history.history import EVENTS, HISTORY, read_objects
from runyard.server.history.reading.dotted_names import keys_of_names
from runyard.server.http import arguments
from runyard.server.http.access import readable_run, tracker_of
from runyard.server.http.answers import HttpError

_STREAMS = {"history": HISTORY, "system": EVENTS}
_PAGE = 5_000


async def rows(request: Request) -> Response:
    run = await readable_run(request)
    given = request.query_params
    stream = given.get("stream", "history")
    if stream not in _STREAMS:
        raise HttpError(400, f"stream cannot be {stream!r}: it is history or system")
    text = await tracker_of(request).read(
        _page,
        run["key"],
        archives.stream_of(
            arguments.number(given.get("archive"), "archive") or 0, _STREAMS[stream]
        ),
        arguments.number(given.get("start"), "start") or 0,
        given.getlist("metric"),
    )
    return Response(text, media_type="application/x-ndjson")


def _page(
    connection: sqlite3.Connection, run: int, stream: int, start: int, metrics: list[str]
) -> str:
    keys = None
    if metrics:
        keys = frozenset(keys_of_names(connection, run, stream, metrics).values())
    found = islice(read_objects(connection, run, stream, start, keys=keys), _PAGE)
    lines = (
        json.dumps({"_row": number, **(row if isinstance(row, dict) else {"_raw": row})})
        for number, row in found
    )
    return "".join(f"{line}\n" for line in lines)
