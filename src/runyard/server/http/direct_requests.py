"""Short requests that are answered inside the protocol, beside the application.

uvicorn's cycle, the middleware and the routing cost several times what it costs to take in one row,
and thousands of runs may post one every second. A request is answered directly only if all of this
holds: its route has a direct handler, nothing about it is unusual, its body came whole with its
head, its key is good, and its handler can answer it. Everything else takes the ordinary path as if
nobody had looked at it: so this module refuses nobody, and has no error answers of its own.
"""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from runyard.server.http.auth_middleware import caller_by_key
from runyard.server.http.routes import Endpoint
from runyard.server.http.security_headers import closed
from runyard.server.people.accounts import Accounts
from runyard.server.people.permissions import Caller

# Nothing in it that has to be decoded, and no query.
_PLAIN_PATH = re.compile(rb"/[A-Za-z0-9/_.~-]+\Z")
# They ask for what only the ordinary path does.
_UNUSUAL = frozenset(
    (b"content-encoding", b"expect", b"te", b"trailer", b"transfer-encoding", b"upgrade")
)
_MOST_HEADERS = 50
_LARGEST_BODY = 64 << 10
_WORK = "runyard.direct_work"


class ReadyAnswer:
    """An answer that is always the same, as it goes over the wire."""

    def __init__(self, response: Response) -> None:
        self._status = STATUS_LINE[response.status_code]
        headers = closed(response.raw_headers)
        self._headers = b"".join(b"%b: %b\r\n" % (name.lower(), value) for name, value in headers)
        self._body = bytes(response.body)
        self.response = response

    def wire(self, first: Sequence[tuple[bytes, bytes]], *, keep_alive: bool) -> bytes:
        """All of it; `first` are the headers that the web server gives every answer."""
        return b"".join(
            (
                self._status,
                *(b"%b: %b\r\n" % header for header in first),
                self._headers,
                b"\r\n" if keep_alive else b"connection: close\r\n\r\n",
                self._body,
            )
        )


class DirectWork(ABC):
    """What a direct handler has begun for a request."""

    began: asyncio.Future[Any]
    """Done when the first part of the work is. An answer can be ready then."""

    @abstractmethod
    def ready(self) -> ReadyAnswer | None:
        """The answer, if there is nothing more to do; None, and nothing is done, if there is."""

    @abstractmethod
    async def finish(self) -> Response:
        """Do what is left, and answer. May raise what a route's handler may."""


DirectHandler = Callable[[Caller, Mapping[str, str], Headers, bytes], DirectWork | None]
"""Begins the work of a request: caller, parts of the path, headers, body. None: it is for the
ordinary path, which says why it is refused, if it is."""


class DirectRoutes:
    """The routes with a direct handler, and who may use them: by the rules of their endpoints."""

    def __init__(
        self,
        handlers: Sequence[tuple[Endpoint, DirectHandler]],
        accounts: Accounts,
        layered: Callable[[ASGIApp], ASGIApp],
        behind_proxies: Callable[[Scope], Scope],
    ) -> None:
        """`layered` puts the application's layers, but the one that lets in, around another one.

        `behind_proxies`: a request as the application sees it.
        """
        self._handlers = handlers
        self._accounts = accounts
        self._behind_proxies = behind_proxies
        self.app = layered(_finish)

    def find(self, method: str, path: str) -> _Route | None:
        """The direct route of a request, with the parts of its path."""
        for endpoint, begin in self._handlers:
            match = endpoint.path_regex.match(path)
            if match is not None and method == endpoint.method:
                return _Route(endpoint, begin, match.groupdict())
        return None

    def begin(self, route: _Route, scope: Scope, body: bytes) -> DirectWork | None:
        """Let a request in and begin its work, as `AuthMiddleware` and its route would."""
        seen = self._behind_proxies(scope)
        caller = caller_by_key(self._accounts, seen)
        if caller is None or not route.endpoint.is_open_to(caller):
            return None
        work = route.begin(caller, route.names, Headers(scope=scope), body)
        if work is not None:
            seen["caller"] = caller  # Its connection has shown a key.
        return work


class _Route:
    __slots__ = ("begin", "endpoint", "names")

    def __init__(self, endpoint: Endpoint, begin: DirectHandler, names: Mapping[str, str]) -> None:
        self.endpoint = endpoint
        self.begin = begin
        self.names = names


async def _finish(scope: Scope, receive: Receive, send: Send) -> None:
    work: DirectWork = scope[_WORK]
    response = await work.finish()
    await response(scope, receive, send)


class _DirectCycle:
    """What uvicorn's protocol looks at of a request in flight."""

    __slots__ = ("disconnected", "keep_alive", "message_event", "response_complete", "scope")

    def __init__(self, scope: Scope, message_event: asyncio.Event) -> None:
        self.scope = scope
        self.message_event = message_event
        self.disconnected = False
        self.keep_alive = True
        self.response_complete = False


class DirectProtocol(HttpToolsProtocol):
    """uvicorn's protocol, with direct routes."""

    routes: DirectRoutes | None = None
    # Of all requests that are answered directly: nobody waits for it.
    _nobodys_event = asyncio.Event()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Of a request whose head has come, and whose body has to come with it.
        self._route: _Route | None = None
        self._body = b""

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._route is not None:
            self._take_ordinary_path()

    def on_headers_complete(self) -> None:
        self._route = self._direct_route()
        if self._route is None:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if self._route is None:
            super().on_body(body)
            return
        self._body += body
        if len(self._body) > _LARGEST_BODY:
            self._take_ordinary_path()

    def on_message_complete(self) -> None:
        route, routes = self._route, self.routes
        if route is None or routes is None:
            super().on_message_complete()
            return
        scope: Any = self.scope
        scope |= {"method": route.endpoint.method, "path": self.url.decode("ascii")}
        try:
            work = routes.begin(route, scope, self._body)
        except Exception:  # The ordinary path meets it again, and answers. Here it would be a 400.
            work = None
        if work is None:
            self._take_ordinary_path()
            super().on_message_complete()
            return
        self._route, self._body = None, b""
        cycle: Any = _DirectCycle(scope, self._nobodys_event)
        self.cycle = cycle
        # Who stops the server waits for what is in here.
        tasks: set[Any] = self.tasks
        tasks.add(work.began)
        work.began.add_done_callback(partial(self._answer, cycle, work))

    def _direct_route(self) -> _Route | None:
        """The route of a request with nothing unusual, on a connection with no other in flight."""
        if self.routes is None or not _PLAIN_PATH.match(self.url):
            return None
        method = self.parser.get_method().decode("ascii")
        route = self.routes.find(method, self.url.decode("ascii"))
        if route is None:
            return None
        is_idle = self.cycle is None or self.cycle.response_complete
        names = [name for name, _ in self.headers]
        is_plain = (
            is_idle
            and not self.transport.is_closing()
            and not self.root_path
            and not self.access_log
            and self.limit_concurrency is None
            and self.parser.get_http_version() == "1.1"
            and self.parser.should_keep_alive()
            and not self.parser.should_upgrade()
            and len(names) <= _MOST_HEADERS
            and names.count(b"content-length") == 1
            and names.count(b"authorization") == 1
            and _UNUSUAL.isdisjoint(names)
        )
        return route if is_plain else None

    def _take_ordinary_path(self) -> None:
        self._route, body, self._body = None, self._body, b""
        super().on_headers_complete()
        if body:
            super().on_body(body)

    def _answer(self, cycle: Any, work: DirectWork, began: asyncio.Future[Any]) -> None:
        tasks: set[Any] = self.tasks
        tasks.discard(began)
        try:
            ready = None if self.flow.write_paused else work.ready()
        except Exception:
            ready = None
        if ready is None:
            self._finish(cycle, work)
        elif not cycle.disconnected:
            cycle.response_complete = True
            first = self.server_state.default_headers
            self.transport.write(ready.wire(first, keep_alive=cycle.keep_alive))
            if not cycle.keep_alive:
                self.transport.close()
            self.on_response_complete()

    def _finish(self, cycle: Any, work: DirectWork) -> None:
        """Do the rest of the work in a task, and answer as uvicorn does."""
        assert self.routes is not None
        app: Any = self.routes.app
        scope: Any = {**cycle.scope, _WORK: work}
        finishing = RequestResponseCycle(
            scope=scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=cycle.keep_alive,
            on_response=self.on_response_complete,
        )
        finishing.more_body = False
        finishing.disconnected = cycle.disconnected
        if self.cycle is cycle:
            self.cycle = finishing
        tasks: set[Any] = self.tasks
        task = self.loop.create_task(finishing.run_asgi(app))
        task.add_done_callback(tasks.discard)
        tasks.add(task)
