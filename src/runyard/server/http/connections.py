"""Connections: whoever has not shown a key yet cannot keep the others out.

On a login node a stranger has the same address as the owner, so there is no limit by address. A
connection on which nobody has shown a key yet may be closed to make room for the next one, the
oldest first; and each request's head has to arrive within a time and a size, TLS's handshake
included.
"""

from __future__ import annotations

import asyncio
import resource
import ssl
from typing import Any

from runyard.server.http.direct_requests import DirectProtocol
from runyard.server.http.tls_transport import TlsTransport

_HEAD_SECONDS = 20.0
_HEAD_BYTES = 64 << 10
# More than the agents of a large job array that all begin in the same moment.
_MOST_UNPROVEN = 1_024
_MOST_FILES = 65_536


def allow_many_connections() -> None:
    """Take as many open files as this process may have: each connection is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    if soft != resource.RLIM_INFINITY:
        GuardedProtocol.most_unproven = min(_MOST_UNPROVEN, soft // 2)


class GuardedProtocol(DirectProtocol):
    """uvicorn's protocol, with a limit on connections without a key and on heads of requests."""

    most_unproven = _MOST_UNPROVEN
    tls: ssl.SSLContext | None = None
    # In the order in which they came; one with a key is taken out when room is made.
    _unproven: dict[GuardedProtocol, None] = {}  # noqa: RUF012 - shared on purpose

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_timer: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._sealed: TlsTransport | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if self.tls is not None:
            transport = self._sealed = TlsTransport(transport, self.tls)
        super().connection_made(transport)
        self._unproven[self] = None
        self._await_head()
        if len(self._unproven) > self.most_unproven:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unproven.pop(self, None)
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._sealed is not None:
            data = self._sealed.receive(data)
            if not data:  # Of a handshake, or of nobody who speaks TLS.
                return
        if self._head_timer is not None:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._head_timer is not None and self._head_bytes > _HEAD_BYTES:
            self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_bytes = 0
        self._await_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        if self._head_timer is None:  # Behind a body in chunks.
            self._head_bytes += len(name) + len(value)
            if self._head_bytes > _HEAD_BYTES:
                self.transport.close()

    def on_headers_complete(self) -> None:
        self._stop_timer()
        self._head_bytes = 0
        super().on_headers_complete()

    def _await_head(self) -> None:
        self._stop_timer()
        self._head_timer = self.loop.call_later(_HEAD_SECONDS, self._close)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _close(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing():
            self.transport.close()

    def _make_room(self) -> None:
        for connection in list(self._unproven):
            if len(self._unproven) <= self.most_unproven:
                return
            del self._unproven[connection]
            if connection.scope is None or "caller" not in connection.scope:
                # Without waiting for what is still to be written: its reader may never read.
                connection.transport.abort()
