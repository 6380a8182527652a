"""A connection without a socket: the protocol that guards it is handed bytes, as cut as wanted."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from typing import Any

import uvicorn
import uvloop
from uvicorn.server import ServerState

from runyard.home import Home, prepare
from runyard.server.app import create_app, direct_routes
from runyard.server.http.connections import GuardedProtocol
from runyard.server.http.proxies import ProxyMiddleware
from runyard.server.tracker import Tracker
from tests.server.asgi import KEY, Client

PROXY = "10.1.0.5"


class Transport(asyncio.Transport):
    """Keeps what is written; what is written after its end is lost."""

    def __init__(self, peer: str = "127.0.0.1") -> None:
        super().__init__()
        self.written = b""
        self.is_closed = False
        self.is_paused = False
        self._peer = peer
        self.protocol: asyncio.Protocol | None = None

    def write(self, data: Any) -> None:
        if not self.is_closed:
            self.written += bytes(data)

    def close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            asyncio.get_running_loop().call_soon(self.lose)

    def abort(self) -> None:
        self.close()

    def lose(self) -> None:
        """The connection has ended, whoever ended it."""
        self.is_closed = True
        if self.protocol is not None:
            self.protocol.connection_lost(None)
            self.protocol = None

    def is_closing(self) -> bool:
        return self.is_closed

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        places = {"peername": (self._peer, 40000), "sockname": ("127.0.0.1", 8123)}
        return places.get(name, default)


class Served:
    """A state folder that is served, with direct routes or without."""

    def __init__(self, home: Home, *, direct: bool) -> None:
        prepare(home)
        self.tracker = Tracker(home)
        self.tracker.open(KEY)
        self.app = create_app(self.tracker, stop=lambda: None)
        self.client = Client(self.app)
        self.client._loop.close()
        self.loop = self.client._loop = uvloop.new_event_loop()
        behind = ProxyMiddleware(self.app, frozenset([PROXY]), "")
        self.routes = direct_routes(self.tracker, behind.seen)
        self.taken = 0
        self.state = ServerState()
        self.state.default_headers = [(b"date", b"today")]
        self.config = uvicorn.Config(
            behind, proxy_headers=False, lifespan="off", log_config=None, access_log=False
        )
        begin = self.routes.begin

        def count(*args: Any) -> Any:
            work = begin(*args)
            self.taken += work is not None
            return work

        vars(self.routes)["begin"] = count

        class Protocol(GuardedProtocol):
            routes = self.routes if direct else None

        self.protocol_class = Protocol

    def close(self) -> None:
        self.client.close()
        self.tracker.close()

    def connect(self, peer: str = "127.0.0.1") -> tuple[GuardedProtocol, Transport]:
        protocol, transport = self.new_protocol(), Transport(peer)
        transport.protocol = protocol
        protocol.connection_made(transport)
        return protocol, transport

    def new_protocol(self) -> GuardedProtocol:
        made = self.protocol_class(self.config, self.state, {}, self.loop)
        made.access_log = False  # As in the server: here pytest listens to every logger.
        return made

    def talk(
        self, fragments: Sequence[bytes], *, peer: str = "127.0.0.1", patient: bool = False
    ) -> bytes:
        """All that is answered to these bytes, and how the connection stood then.

        `patient`: each fragment comes when nothing happens any more after the one before.
        """

        async def talk() -> bytes:
            protocol, transport = self.connect(peer)
            for fragment in fragments:
                if transport.is_closed:
                    break
                protocol.data_received(fragment)
                await (self.settle(protocol) if patient else asyncio.sleep(0))
            await self.settle(protocol)
            written = transport.written + (b"closed" if transport.is_closed else b"open")
            scope: Any = protocol.scope
            is_proven = scope is not None and "caller" in scope
            transport.lose()
            await self.all_done()
            return written + (b", proven" if is_proven else b"")

        return self.loop.run_until_complete(talk())

    async def settle(self, protocol: GuardedProtocol) -> None:
        """Until nothing happens any more without another byte."""

        def waits_for_body() -> bool:
            is_last = len(self.state.tasks) == 1 and not protocol.pipeline
            event: Any = getattr(protocol.cycle, "message_event", None)
            return is_last and event is not None and bool(event._waiters)

        def is_at_work() -> bool:
            # What was behind an answer that closed the connection is never begun.
            is_open = not protocol.transport.is_closing()
            return bool(self.state.tasks or (protocol.pipeline and is_open))

        await asyncio.sleep(0)
        while is_at_work() and not waits_for_body():
            await asyncio.sleep(0.001)

    async def all_done(self) -> None:
        while self.state.tasks:
            await asyncio.sleep(0.001)


def authorization(key: str) -> bytes:
    return b"Basic " + base64.b64encode(f"api:{key}".encode())


def request(
    path: str,
    body: bytes,
    *more: tuple[str, bytes],
    key: str | None = KEY,
    method: str = "POST",
    version: str = "1.1",
    length: int | None = None,
) -> bytes:
    """One request as it goes over the wire."""
    headers = [("Host", b"yard.example")]
    if key is not None:
        headers.append(("Authorization", authorization(key)))
    if length != -1:
        headers.append(("Content-Length", b"%d" % (len(body) if length is None else length)))
    lines = [b"%b: %b\r\n" % (name.encode(), value) for name, value in [*headers, *more]]
    return b"".join([f"{method} {path} HTTP/{version}\r\n".encode(), *lines, b"\r\n", body])
