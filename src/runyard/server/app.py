"""The web application: routes, who may use them, and what trouble looks like from outside."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import logging
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from runyard.server import api
from runyard.server.answers import Unacceptable, answer, read_json
from runyard.server.filestream import file_stream
from runyard.server.graphql import executor, fields
from runyard.server.store import runs
from runyard.server.store.database import DiskFull
from runyard.server.tracker import Tracker
from runyard.server.uploads import BadAddress

log = logging.getLogger(__name__)


def create_app(tracker: Tracker, stop: Callable[[], None]) -> Starlette:
    """The application over an open tracker; `stop` ends the process that serves it."""

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        watch = asyncio.create_task(tracker.watch_silence())
        yield
        watch.cancel()

    app = Starlette(
        routes=[
            Route("/graphql", graphql, methods=["POST"]),
            Route("/files/{entity}/{project}/{run}/file_stream", file_stream, methods=["POST"]),
            Route("/files/{entity}/{project}/{run}/{name:path}", download),
            Route("/uploads/{token}", upload, methods=["PUT"]),
            *api.ROUTES,
            Route("/{entity}/{project}", signpost),
            Route("/{entity}/{project}/runs/{run}", signpost),
        ],
        middleware=[Middleware(Gate, tracker=tracker)],
        exception_handlers={
            Unacceptable: _unacceptable,
            DiskFull: _own_trouble,
            OSError: _own_trouble,
            sqlite3.Error: _own_trouble,
            Exception: _own_trouble,
        },
        lifespan=lifespan,
    )
    app.state.tracker = tracker
    app.state.stop = stop
    return app


class Gate:
    """Lets nobody in without a key. Uploads carry a signed address; signposts tell nothing."""

    def __init__(self, app: ASGIApp, tracker: Tracker) -> None:
        self._app = app
        self._tracker = tracker

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            caller = self._tracker.caller(_key_of(scope))
            if caller is not None:
                scope["caller"] = caller
            elif _is_guarded(scope):
                refusal = answer({"error": "this needs the key: see `runyard env`"}, 401)
                refusal.headers["WWW-Authenticate"] = 'Basic realm="runyard"'
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _is_guarded(scope: Scope) -> bool:
    path: str = scope["path"]
    if path.startswith("/uploads/"):
        return False
    return scope["method"] not in ("GET", "HEAD") or path.startswith(("/api/", "/files/"))


def _key_of(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"authorization" and value[:6].lower() == b"basic ":
            with contextlib.suppress(binascii.Error, UnicodeDecodeError):
                return base64.b64decode(value[6:]).decode().partition(":")[2]
    return ""


async def graphql(request: Request) -> Response:
    body = await read_json(request)
    text, variables = body.get("query"), body.get("variables")
    if not isinstance(text, str) or not isinstance(variables, dict | None):
        raise Unacceptable(400, "query is not a text, or variables is not an object")
    context = fields.Request(request.app.state.tracker, request.scope["caller"], _base_url(request))
    try:
        data = await executor.execute(text, variables, fields.roots(context))
    except executor.Refusal as refusal:
        return answer({"data": None, "errors": [{"message": str(refusal)}]})
    return answer({"data": data})


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
    if row is not None:
        file = tracker.uploads.path(row["key"], path["name"])
        if file.is_file():
            return FileResponse(file, filename=path["name"].rpartition("/")[2])
    raise Unacceptable(404, f"there is no file {path['name']!r} of run {path['run']!r}")


async def signpost(request: Request) -> Response:
    """Where the client's printed links lead: says how to see the run, and nothing of it."""
    run = request.path_params.get("run")
    command = f"runyard show {run}" if run else "runyard runs"
    return PlainTextResponse(f"This is runyard's server. To see it in a terminal:\n\n  {command}\n")


def _record_file(connection: sqlite3.Connection, run: int, name: str, size: int) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO files (run, name, size, updated_at) VALUES (?, ?, ?, ?)",
        (run, name, size, time.time()),
    )


def _base_url(request: Request) -> str:
    # The name the client used: nodes may reach us through tunnels and by other names.
    host = request.headers.get("host") or "127.0.0.1"
    return f"{request.url.scheme}://{host}"


async def _unacceptable(_request: Request, error: Exception) -> Response:
    return answer({"error": str(error)}, getattr(error, "status", 400))


async def _own_trouble(request: Request, error: Exception) -> Response:
    """Our own trouble is 503: clients keep their data and try again. A 4xx ends their stream."""
    if isinstance(error, ClientDisconnect):
        return answer({"error": "the request was cut off"}, 400)
    if isinstance(error, DiskFull | OSError):
        log.error("%s %s: %s", request.method, request.url.path, error)
    else:
        log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    response: Any = answer({"error": f"{type(error).__name__}: {error}"}, 503)
    response.headers["Retry-After"] = "5"
    return response  # type: ignore[no-any-return]
