"""Logging a browser in: a command asks for a code, the browser exchanges it for a cookie."""

from __future__ import annotations

import time

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from runyard.server.access import caller_of, tracker_of
from runyard.server.answers import Unacceptable, answer, read_json
from runyard.server.page.cookies import cookie_path, is_own_write, set_cookie
from runyard.server.page.sessions import CODE_SECONDS, SESSION_SECONDS


async def make_code(request: Request) -> Response:
    """A code that logs one browser in as the caller."""
    code = tracker_of(request).codes.make(caller_of(request).key_id, time.time())
    return answer({"code": code, "seconds": int(CODE_SECONDS)})


async def log_in(request: Request) -> Response:
    """`path` and `secure` are how the browser sees us: a proxy may stand in between."""
    if not is_own_write(request.scope):
        raise Unacceptable(403, "log in on runyard's own page")
    given = await read_json(request)
    tracker = tracker_of(request)
    code = given.get("code")
    key_id = tracker.codes.take(code, time.time()) if isinstance(code, str) else None
    caller = tracker.by_key_id(key_id) if key_id else None
    if caller is None:
        raise Unacceptable(
            403, "this link was used before or is too old: `runyard ui` prints a fresh one"
        )
    response = answer({"name": caller.name})
    response.headers["Set-Cookie"] = set_cookie(
        tracker.sessions.cookie,
        tracker.sessions.make(caller.key_id),
        cookie_path(given.get("path")),
        SESSION_SECONDS,
        secure=given.get("secure") is True,
    )
    return response


async def log_out(request: Request) -> Response:
    given = await read_json(request)
    response = answer({})
    response.headers["Set-Cookie"] = set_cookie(
        tracker_of(request).sessions.cookie, "", cookie_path(given.get("path")), 0, secure=False
    )
    return response


ROUTES = [
    Route("/api/login/codes", make_code, methods=["POST"]),
    Route("/api/logout", log_out, methods=["POST"]),
]
OPEN_ROUTES = [Route("/api/login", log_in, methods=["POST"])]
