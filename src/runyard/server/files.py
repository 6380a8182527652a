"""The routes by which run files come and go."""

from __future__ import annotations

import asyncio
import sqlite3
import time

from starlette.requests import Request
from starlette.responses import FileResponse, Response

from runyard.server.answers import Unacceptable, answer
from runyard.server.permissions import may_read
from runyard.server.store import runs
from runyard.server.tracker import Tracker
from runyard.server.uploads import BadAddress


async def upload(request: Request) -> Response:
    tracker: Tracker = request.app.state.tracker
    try:
        run, name = tracker.uploads.read_token(request.path_params["token"])
    except BadAddress as error:
        raise Unacceptable(403, str(error)) from error
    if await tracker.read(runs.by_key, run) is None:
        raise Unacceptable(404, "the run of this upload is gone")
    size = await tracker.uploads.receive(run, name, request.stream())
    await tracker.write(_record_file, run, name, size)
    return answer({})


async def download(request: Request) -> Response:
    tracker: Tracker = request.app.state.tracker
    path = request.path_params
    row = await tracker.read(runs.by_path, path["entity"], path["project"], path["run"])
    if row is not None and may_read(request.scope["caller"], path["entity"]):
        file = tracker.uploads.path(row["key"], path["name"])
        if await asyncio.to_thread(file.is_file):
            # As an attachment: a page that a program uploaded must not run as one of ours.
            return FileResponse(file, filename=path["name"].rpartition("/")[2])
    raise Unacceptable(404, f"there is no file {path['name']!r} of run {path['run']!r}")


def _record_file(connection: sqlite3.Connection, run: int, name: str, size: int) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO files (run, name, size, updated_at) VALUES (?, ?, ?, ?)",
        (run, name, size, time.time()),
    )
