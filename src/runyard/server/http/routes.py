"""How a route is declared: who may ask, and by which keys.

Starlette's routes, `AuthMiddleware`'s rules and the limits of keys for runs are all read from these
declarations.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import Enum, auto
from typing import TypeAlias

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from runyard.server.http.answers import answer
from runyard.server.http.scopes import REFUSAL
from runyard.server.people.permissions import ALL

Handler: TypeAlias = Callable[[Request], Awaitable[Response]]


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
    """A route: method and path, who answers, who may ask.

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
    ) -> None:
        super().__init__(path, handler, methods=method.split("|"))
        self.scope = scope
        self.access = access
        if scope == ALL and access is not Access.EVERYBODY:
            self.app = _for_own_keys(self.app)


def _for_own_keys(inner: ASGIApp) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["caller"].scope == ALL:
            await inner(scope, receive, send)
        else:
            await answer({"error": REFUSAL}, 403)(scope, receive, send)

    return app
