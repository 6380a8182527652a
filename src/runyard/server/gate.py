"""Who may come in: nobody without the key, except where a route is named as open."""

from __future__ import annotations

import base64
import binascii
import contextlib
from collections.abc import Sequence

from starlette.routing import Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from runyard.server.answers import answer
from runyard.server.tracker import Tracker


class Gate:
    """Lets a request in with the key, or if the route that answers its path is an open one."""

    def __init__(
        self, app: ASGIApp, tracker: Tracker, routes: Sequence[Route], is_open: Sequence[Route]
    ) -> None:
        self._app = app
        self._tracker = tracker
        self._routes = routes
        self._open = {id(route) for route in is_open}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            caller = self._tracker.caller(_key_of(scope))
            if caller is not None:
                scope["caller"] = caller
            elif id(self._route_of(scope)) not in self._open:
                refusal = answer({"error": "this needs the key: see `runyard env`"}, 401)
                refusal.headers["WWW-Authenticate"] = 'Basic realm="runyard"'
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _route_of(self, scope: Scope) -> Route | None:
        """The route of the request's path, whatever its method."""
        matching = (route for route in self._routes if route.matches(scope)[0] != Match.NONE)
        return next(matching, None)


def _key_of(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"authorization" and value[:6].lower() == b"basic ":
            with contextlib.suppress(binascii.Error, UnicodeDecodeError):
                return base64.b64decode(value[6:]).decode().partition(":")[2]
    return ""
