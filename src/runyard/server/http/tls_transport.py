"""A connection over TLS, inside the protocol that guards it.

asyncio's own TLS tells the protocol of a connection only when its handshake is over, so whoever
never shakes hands would be counted by nobody. Here a connection counts from its first moment.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

from runyard.trust import TlsBytes

_HANDSHAKE = 0x16
_SPEAKS_TLS = b"this server speaks TLS: its address begins with https://\n"
# A 4xx would make a program that was started before TLS was switched on drop what it logs.
PLAIN_ANSWER = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain\r\nconnection: close\r\n"
    b"content-length: %d\r\n\r\n%s" % (len(_SPEAKS_TLS), _SPEAKS_TLS)
)


class TlsTransport(asyncio.Transport):
    """What is written goes out encrypted; the rest is the transport's below."""

    def __init__(self, below: asyncio.Transport, context: ssl.SSLContext) -> None:
        super().__init__()
        self._below = below
        self._context = context
        self._tls = TlsBytes(context, server_side=True)
        self._is_first = True

    def receive(self, wire: bytes) -> bytes:
        """What came, in plain. Closes the connection where it is no TLS."""
        if self._is_first and wire[0] != _HANDSHAKE:
            self._put(PLAIN_ANSWER)
            self._below.close()
            return b""
        self._is_first = False
        try:
            plain, answer = self._tls.receive(wire)
        except ssl.SSLError:
            # An alert says why, so that the other side's error does.
            self._put(self._tls.last_words())
            self._below.close()
            return b""
        self._put(answer)
        if self._tls.is_closed:
            self._below.close()
        return plain

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        if not self._below.is_closing():
            self._put(self._tls.send(bytes(data)))

    def close(self) -> None:
        if not self._below.is_closing():
            self._put(self._tls.last_words())
            self._below.close()

    def _put(self, wire: bytes) -> None:
        if wire and not self._below.is_closing():
            self._below.write(wire)

    def abort(self) -> None:
        self._below.abort()

    def is_closing(self) -> bool:
        return self._below.is_closing()

    def pause_reading(self) -> None:
        self._below.pause_reading()

    def resume_reading(self) -> None:
        self._below.resume_reading()

    def is_reading(self) -> bool:
        return self._below.is_reading()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        # By this uvicorn knows that the address is https.
        return self._context if name == "sslcontext" else self._below.get_extra_info(name, default)
