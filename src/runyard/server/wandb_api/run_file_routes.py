"""The routes by which run files come and go."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import time
from collections.abc import AsyncIterator

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from runyard.server.http.access import signed
from runyard.server.http.answers import HttpError, answer
from runyard.server.http.security_headers import kind_of_file
from runyard.server.people.permissions import may_read
from runyard.server.people.signed_addresses import Kind
from runyard.server.runs import run_files, runs
from runyard.server.tracker import Tracker


async def upload(request: Request) -> Response:
    tracker: Tracker = request.app.state.tracker
    caller, (run, name) = signed(request, Kind.RUN_FILE_UP)
    row = await tracker.read(runs.by_key, run)
    # To somebody who may not write there any more, nothing is told of where the run is now.
    if row is None or not tracker.accounts.may_write(caller, row["entity"]):
        raise HttpError(404, "the run of this upload is gone")
    digest = hashlib.md5(usedforsecurity=False)
    size = await tracker.uploads.receive(run, name, _hashed(request.stream(), digest))
    md5 = base64.b64encode(digest.digest()).decode()
    if not await tracker.write(run_files.put_file, run, name, size, md5, time.time()):
        # Deleted while this came in.
        await asyncio.to_thread(tracker.uploads.remove_run, run)
        raise HttpError(404, "the run of this upload is gone")
    return answer({})


async def download(request: Request) -> Response:
    tracker: Tracker = request.app.state.tracker
    path = request.path_params
    row = await tracker.read(runs.by_path, path["entity"], path["project"], path["run"])
    if row is not None and may_read(request.scope["caller"], path["entity"]):
        file = tracker.uploads.path(row["key"], path["name"])
        if await asyncio.to_thread(file.is_file):
            # As an attachment: a page that a program uploaded must not run as one of ours.
            name = path["name"].rpartition("/")[2]
            return FileResponse(file, filename=name, media_type=kind_of_file(name))
    raise HttpError(404, f"there is no file {path['name']!r} of run {path['run']!r}")


async def download_history(request: Request) -> Response:
    tracker: Tracker = request.app.state.tracker
    caller, (run, name) = signed(request, Kind.HISTORY_DOWN)
    row = await tracker.read(runs.by_key, run)
    if row is None or not may_read(caller, row["entity"]):
        raise HttpError(404, "the run of this file is gone")
    if "range" in request.headers:
        raise HttpError(409, "this file is for downloads, which take all of it")
    path = await tracker.exports.make(tracker, run, name)
    # Older clients ask for the size first.
    is_taken = request.method == "GET"
    after = BackgroundTask(tracker.exports.drop, name) if is_taken else None
    return FileResponse(path, media_type="application/vnd.apache.parquet", background=after)


async def _hashed(chunks: AsyncIterator[bytes], digest: hashlib._Hash) -> AsyncIterator[bytes]:
    async for chunk in chunks:
        digest.update(chunk)
        yield chunk
