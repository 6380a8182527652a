"""The way of a client's posts past the application's layers.

Routing, middleware and their like cost several times what a post of one row does. Thousands of
runs that log every second would keep the event loop busy with that alone.
"""

from __future__ import annotations

import logging

from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from runyard.server.http.answers import HttpError
from runyard.server.http.auth_middleware import address_of, key_of
from runyard.server.http.error_middleware import answer_http_error, own_trouble
from runyard.server.http.security_headers import CLOSED
from runyard.server.tracker import Tracker
from runyard.server.wandb_api.filestream import file_stream

log = logging.getLogger(__name__)


class DirectPosts:
    """Answers `file_stream` to whoever shows a good key; all else is the application's."""

    def __init__(self, app: ASGIApp, tracker: Tracker) -> None:
        self._app = app
        self._accounts = tracker.accounts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        place = _place(scope)
        key = key_of(scope) if place else ""
        caller = self._accounts.caller(key, address_of(scope), is_stock=True) if key else None
        if caller is None:
            await self._app(scope, receive, send)
            return
        scope["caller"], scope["path_params"] = caller, place
        request = Request(scope, receive)
        try:
            response = await file_stream(request)
        except ClientDisconnect:
            log.info("%r: the request was cut off", scope["path"][:300])
            return
        except HttpError as error:
            response = await answer_http_error(request, error)
        except Exception as error:
            response = own_trouble(scope, error)
        response.raw_headers.extend(CLOSED)
        await response(scope, receive, send)


def _place(scope: Scope) -> dict[str, str] | None:
    """The run that a post is for, as the application's route names its parts."""
    if scope["type"] != "http" or scope["method"] != "POST":
        return None
    words = scope["path"].split("/")
    if len(words) != 6 or words[:2] != ["", "files"] or words[5] != "file_stream":
        return None
    entity, project, run = words[2:5]
    is_whole = entity and project and run
    return {"entity": entity, "project": project, "run": run} if is_whole else None
