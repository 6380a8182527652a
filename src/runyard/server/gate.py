"""Who may come in: nobody without the key or a session of the page, except by an open route."""

from __future__ import annotations

import base64
import binascii
import contextlib
from collections.abc import Sequence

from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from runyard.server.answers import answer
from runyard.server.page.cookies import cookie_of, is_from_browser, is_own_write
from runyard.server.permissions import Caller
from runyard.server.tracker import Tracker


class Gate:
    """Lets a request in with the key, with a session's cookie, or by an open route."""

    def __init__(
        self, app: ASGIApp, tracker: Tracker, routes: Sequence[Route], is_open: Sequence[Route]
    ) -> None:
        self._app = app
        self._tracker = tracker
        self._routes = routes
        self._open = {id(route) for route in is_open}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            key = key_of(scope)
            caller = self._tracker.caller(key, _address_of(scope))
            if caller is None:
                caller = self._visitor(scope)
                if caller is not None and not is_own_write(scope):
                    refusal = answer({"error": "only runyard's own page may change this"}, 403)
                    await refusal(scope, receive, send)
                    return
            if caller is not None:
                scope["caller"] = caller
            elif id(self._route_of(scope)) not in self._open:
                await _refusal(scope, self._tracker.why_refused(key))(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _visitor(self, scope: Scope) -> Caller | None:
        """Who is logged in on the page that asks."""
        token = cookie_of(scope, self._tracker.sessions.cookie)
        key_id = self._tracker.sessions.read(token) if token else None
        return self._tracker.by_key_id(key_id) if key_id else None

    def _route_of(self, scope: Scope) -> Route | None:
        """The route of the request's path, whatever its method."""
        matching = (route for route in self._routes if route.matches(scope)[0] != Match.NONE)
        return next(matching, None)


def _refusal(scope: Scope, why: str | None) -> Response:
    if is_from_browser(scope):
        # Without the header by which a browser would ask for a name and a password.
        return answer({"error": "you are not logged in: `runyard ui` prints a link"}, 401)
    refusal = answer({"error": why or "this needs the key: see `runyard env`"}, 401)
    refusal.headers["WWW-Authenticate"] = 'Basic realm="runyard"'
    return refusal


def _address_of(scope: Scope) -> str:
    return str(scope["client"][0]) if scope.get("client") else ""


def key_of(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"authorization" and value[:6].lower() == b"basic ":
            with contextlib.suppress(binascii.Error, UnicodeDecodeError):
                return base64.b64decode(value[6:]).decode().partition(":")[2]
    return ""
