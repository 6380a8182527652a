"""What trouble looks like from outside.

Our own trouble is 503: clients keep their data and try again. A 4xx would end their stream.
"""

from __future__ import annotations

import logging
import sqlite3

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from runyard.server.http.answers import HttpError, answer
from runyard.server.store.database import Closed, DiskFull

log = logging.getLogger(__name__)

# These speak of the disk; the text of any other error could hold what a client sent.
_TOLD = (DiskFull, Closed, OSError, sqlite3.OperationalError)


class ErrorMiddleware:
    """Turns every error into an answer.

    Starlette's own handler for `Exception` answers, and then raises the error again for the web
    server to log a second time.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def watch(message: Message) -> None:
            nonlocal begun
            begun = begun or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, watch)
        except ClientDisconnect:
            log.info("%s: the request was cut off", _place(scope))
        except Exception as error:
            response = own_trouble(scope, error)
            if begun:
                raise  # Too late for another answer: the connection is cut.
            await response(scope, receive, send)


def own_trouble(scope: Scope, error: Exception) -> Response:
    if isinstance(error, _TOLD):
        log.error("%s: %s: %s", _place(scope), type(error).__name__, error)
        message = f"{type(error).__name__}: {error}"
    else:
        log.error("%s failed", _place(scope), exc_info=error)
        message = f"the server has trouble of its own ({type(error).__name__}); its log says more"
    response = answer({"error": message}, 503)
    response.headers["Retry-After"] = "5"
    return response


async def answer_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HttpError)
    if request.url.path.endswith("/file_stream"):
        log.warning("%s: a client's stream ends here: %s", _place(request.scope), error)
    return answer({"error": str(error)}, error.status)


def _place(scope: Scope) -> str:
    path: str = scope["path"]
    for open_to_all in ("/uploads/", "/downloads/"):
        if path.startswith(open_to_all):
            path = f"{open_to_all}..."  # The rest is as good as a key.
    return f"{scope['method']} {path[:300]!r}"
