"""TLS between runyard's own processes: clients trust only the authority of the state folder.

`server.json` holds the authority's certificate beside the key (`Discovery.authority`). Clients
verify a server only by that, under one fixed name. So the server may move, and may be reached by an
address, through a relay or through a tunnel. An https address without an authority is refused,
never tried unverified.
"""

from __future__ import annotations

import contextlib
import http.client
import ssl
import urllib.parse

from runyard.errors import ServerError

# In every certificate that the authority signs. Used in the handshake, never looked up in DNS.
SERVER_NAME = "server.runyard.internal"
# TLS carries at most 16 kB a record.
_READ_AT_ONCE = 1 << 18


def pinned_context(authority: str) -> ssl.SSLContext:
    """Verifies against this authority (PEM) and nothing else."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_verify_locations(cadata=authority)
    except (ValueError, ssl.SSLError) as error:
        raise ServerError(
            "the address of the server is https, and server.json has no authority to verify it by",
            said=error,
            mend="`runyard server restart` writes it again",
        ) from error
    return context


def open_http(url: str, authority: str, timeout: float) -> http.client.HTTPConnection:
    """A connection to runyard's server, not connected yet."""
    parts = urllib.parse.urlsplit(url)
    host = parts.hostname or "127.0.0.1"
    if parts.scheme == "https":
        return _PinnedConnection(host, parts.port, authority, timeout)
    return http.client.HTTPConnection(host, parts.port, timeout=timeout)


class _PinnedConnection(http.client.HTTPConnection):
    default_port = 443

    def __init__(self, host: str, port: int | None, authority: str, timeout: float) -> None:
        super().__init__(host, port, timeout=timeout)
        self._authority = authority

    def connect(self) -> None:
        context = pinned_context(self._authority)
        super().connect()
        plain = self.sock
        try:
            self.sock = context.wrap_socket(plain, server_hostname=SERVER_NAME)
        except BaseException:
            plain.close()
            self.sock = None
            raise


def why_refused(url: str, authority: str, timeout: float) -> str | None:
    """What is wrong with the certificate of the process that listens there; None if nothing is."""
    connection = open_http(url, authority, timeout)
    try:
        connection.connect()
    except ssl.SSLCertVerificationError as error:
        return error.verify_message
    except ssl.SSLError as error:
        return error.reason or str(error)
    except OSError:
        return None
    finally:
        connection.close()
    return None


class TlsBytes:
    """TLS over any stream, without blocking: bytes from the wire in, bytes for the wire out."""

    def __init__(self, context: ssl.SSLContext, *, server_side: bool = False) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming,
            self._outgoing,
            server_side=server_side,
            server_hostname=None if server_side else SERVER_NAME,
        )
        self._waiting = b""
        self.is_open = False
        """Whether the handshake is over."""
        self.is_closed = False
        """Whether the other side has announced that it sends no more."""
        self._shake_hands()

    def send(self, plain: bytes) -> bytes:
        """Bytes for the wire. No data goes out before the handshake is over."""
        self._waiting += plain
        self._write_waiting()
        return self._outgoing.read()

    def receive(self, wire: bytes) -> tuple[bytes, bytes]:
        """The decrypted data, and bytes for the wire; ssl.SSLError if it is refused."""
        self._incoming.write(wire)
        if not self.is_open:
            self._shake_hands()
        pieces = []
        while self.is_open and not self.is_closed:
            try:
                piece = self._tls.read(_READ_AT_ONCE)
            except ssl.SSLWantReadError:
                break
            pieces.append(piece)
            self.is_closed = not piece
        return b"".join(pieces), self._outgoing.read()

    def last_words(self) -> bytes:
        """Bytes for the wire before it is closed, or after the other side was refused."""
        if self.is_open:
            # The other side does not have to answer.
            with contextlib.suppress(ssl.SSLError):
                self._tls.unwrap()
        return self._outgoing.read()

    def _shake_hands(self) -> None:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return
        self.is_open = True
        self._write_waiting()

    def _write_waiting(self) -> None:
        if self.is_open and self._waiting:
            self._tls.write(self._waiting)
            self._waiting = b""
