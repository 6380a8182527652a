"""How a route is declared: who may ask, by which keys, what goes in and what comes out.

Starlette's routes, `AuthMiddleware`'s rules, the limits of keys for runs and the OpenAPI
description are all read from these declarations.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from enum import Enum, auto
from typing import Any, TypeAlias

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from runyard.server.http.answers import answer as send
from runyard.server.http.scopes import REFUSAL
from runyard.server.people.permissions import ALL, Caller

Handler: TypeAlias = Callable[[Request], Awaitable[Response]]
Declare: TypeAlias = Callable[[Handler], Handler]
Shape: TypeAlias = Any
"""A type of `runyard.shapes`, a dataclass, or the fields of an object with their types."""

JSON, LINES = "application/json", "application/x-ndjson"
BINARY, EVENTS = "application/octet-stream", "text/event-stream"


class Access(Enum):
    """What a caller must show. With a key, every route is open."""

    EVERYBODY = auto()
    PAGE = auto()
    """A key, or a session of the page."""
    FILE = auto()
    """The same; a page loads these without a header, by the ticket in the address."""
    CONFIRMED = auto()
    """A page must have shown a code or a key a moment ago."""
    KEY = auto()
    """Not for a page."""


class Endpoint(Route):
    """A route; the handler's docstring is its description.

    `scope` is what a caller's key must open. A key for runs is in the environment of programs
    (`people/api_keys.py`) and may fall into other hands: it logs and reads its owner's runs. So a
    route is closed to such keys unless it is declared with `scope=RUNS`.
    """

    def __init__(
        self,
        method: str,
        path: str,
        handler: Handler,
        scope: str = ALL,
        access: Access = Access.PAGE,
        *,
        tag: str = "",
        query: Mapping[str, Any] | None = None,
        body: Shape = None,
        answer: Shape = None,
        media: str = JSON,
    ) -> None:
        super().__init__(path, handler, methods=method.split("|"))
        self.method = method
        self.tag = tag
        self.scope = scope
        self.access = access
        self.query = query or {}
        self.body = body
        self.answer = answer
        self.media = media
        if scope == ALL and access is not Access.EVERYBODY:
            self.app = _for_own_keys(self, self.app)

    def is_open_to(self, caller: Caller) -> bool:
        """Whether the key that a caller came with opens this route."""
        return self.scope != ALL or caller.scope == ALL


class Endpoints(list[Endpoint]):
    """The routes of a module, in the order of their handlers, under one heading of the description.

    `@endpoints.get(path, ...)` before a handler declares its route; the rest is `Endpoint`'s.
    """

    def __init__(self, tag: str = "") -> None:
        super().__init__()
        self._tag = tag

    def get(self, path: str, *rest: Any, **more: Any) -> Declare:
        return self._declare("GET", path, *rest, **more)

    def post(self, path: str, *rest: Any, **more: Any) -> Declare:
        return self._declare("POST", path, *rest, **more)

    def put(self, path: str, *rest: Any, **more: Any) -> Declare:
        return self._declare("PUT", path, *rest, **more)

    def patch(self, path: str, *rest: Any, **more: Any) -> Declare:
        return self._declare("PATCH", path, *rest, **more)

    def delete(self, path: str, *rest: Any, **more: Any) -> Declare:
        return self._declare("DELETE", path, *rest, **more)

    def _declare(self, method: str, path: str, *rest: Any, **more: Any) -> Declare:
        def declare(handler: Handler) -> Handler:
            self.append(Endpoint(method, path, handler, *rest, **{"tag": self._tag, **more}))
            return handler

        return declare


def _for_own_keys(endpoint: Endpoint, inner: ASGIApp) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send_message: Send) -> None:
        if endpoint.is_open_to(scope["caller"]):
            await inner(scope, receive, send_message)
        else:
            await send({"error": REFUSAL}, 403)(scope, receive, send_message)

    return app
