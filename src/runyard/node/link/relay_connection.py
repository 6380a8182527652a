"""One connection through a door or a relay: a program's on one side, ours to the server beyond."""

from __future__ import annotations

import socket
import time
from functools import partial

from runyard.node.link.channel import begin_tls, parse_answer
from runyard.node.link.lookup import find_address
from runyard.node.system.loop import READ, WRITE
from runyard.proof import LONGEST_ANSWER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from runyard.node.link.lookup import Address, Lookup
    from runyard.node.link.place import Place, ServerAddress
    from runyard.node.system.loop import Loop
    from runyard.proof import Question
    from runyard.trust import TlsBytes

_AT_ONCE = 1 << 18
_RECONNECT_PAUSES = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0)
# A move takes seconds. Who waits longer is better off asking anew, which its client does by itself.
_PATIENCE_SECONDS = 25.0
# A stranger in the server's place may never answer.
_PROOF_SECONDS = 5.0


class RelayConnection:
    """One connection of a program, and ours to the server."""

    def __init__(
        self,
        loop: Loop,
        place: Place,
        client: socket.socket,
        on_end: Callable[[RelayConnection], None],
    ) -> None:
        self._loop = loop
        self._place = place
        self._on_end = on_end
        self._client = _made_quick(client)
        self._lookup: Lookup | None = None
        self._server: socket.socket | None = None
        self._server_address: ServerAddress | None = None
        self._questions: list[Question] = []
        self._heard = b""
        self._is_verified = False
        self._tries = 0
        self._until = time.monotonic() + _PATIENCE_SECONDS
        self._to_server = b""
        self._to_client = b""
        self._is_over = False

    def begin(self) -> None:
        """Connect to the server; a client that comes while it moves waits here."""
        if self._is_over:
            return
        self._server_address = self._place.find()
        self._is_verified = False
        if self._server_address is None:
            self._try_later()
        else:
            self._connect(self._server_address)

    def _connect(self, address: ServerAddress) -> None:
        self._lookup = find_address(self._loop, address.host, address.port, self._reach)

    def _reach(self, target: Address | None) -> None:
        self._lookup = None
        if target is None:
            self._try_later()
            return
        try:
            made = _made_quick(socket.socket(target[0], socket.SOCK_STREAM))
        except OSError:
            self._try_later()
            return
        self._server = made
        try:
            made.connect(target[1])
        except BlockingIOError:
            self._loop.watch(made.fileno(), WRITE, self._on_connected)
        except OSError:
            self._try_another()
        else:
            self._on_connected(WRITE)

    def close(self) -> None:
        if self._is_over:
            return
        self._is_over = True
        self._drop_server()
        self._loop.forget(self._client.fileno())
        self._client.close()
        self._on_end(self)

    def _drop_server(self) -> None:
        if self._lookup is not None:
            self._lookup.cancel()
            self._lookup = None
        if self._server is not None:
            self._loop.forget(self._server.fileno())
            self._server.close()
            self._server = None

    def _try_later(self) -> None:
        if time.monotonic() >= self._until:
            self.close()
            return
        pause = _RECONNECT_PAUSES[min(self._tries, len(_RECONNECT_PAUSES) - 1)]
        self._tries += 1
        self._loop.after(pause, self.begin)

    def _on_connected(self, _events: int) -> None:
        assert self._server is not None
        assert self._server_address is not None
        if self._server.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self._try_another()
            return
        self._loop.after(_PROOF_SECONDS, partial(self._on_proof_late, self._server))
        if self._is_tls:
            self._verify(self._server, self._server_address)
            return
        self._questions = self._server_address.questions()
        self._ask(self._server, self._server_address)

    def _verify(self, server: socket.socket, address: ServerAddress) -> None:
        """Shake hands with whoever is there; then carry what the client sends, by a new connection.

        The client verifies the server as well, but may give up for good where it cannot.
        """
        if self._is_verified:
            self._watch()
            return
        try:
            tls = begin_tls(address)
            server.send(tls.send(b""))
        except OSError:
            self._try_another()
        else:
            self._loop.watch(
                server.fileno(), READ, partial(self._on_handshake, server, address, tls)
            )

    def _on_handshake(
        self, server: socket.socket, address: ServerAddress, tls: TlsBytes, _events: int
    ) -> None:
        try:
            data = server.recv(_AT_ONCE)
            answer = tls.receive(data)[1]
            if answer:
                server.send(answer)
        except BlockingIOError:
            return
        except OSError:  # Of the network, or of TLS: a certificate that is not our server's.
            data = b""
        if not data:
            self._try_another()
        elif tls.is_open:
            self._is_verified = True
            self._drop_server()
            self._connect(address)

    def _ask(self, server: socket.socket, address: ServerAddress) -> None:
        """Let the server prove who it is; then carry what the client sends."""
        if not self._questions:
            self._watch()
            return
        self._heard = b""
        try:
            server.send(address.encoded(self._questions[0]))
        except OSError:
            self._try_another()
        else:
            self._loop.watch(server.fileno(), READ, partial(self._on_proof, server, address))

    def _on_proof(self, server: socket.socket, address: ServerAddress, _events: int) -> None:
        try:
            data = server.recv(LONGEST_ANSWER)
            self._heard += data
            parsed = parse_answer(self._heard)
        except BlockingIOError:
            return
        except (OSError, ValueError, IndexError):  # What speaks there does not speak HTTP.
            self._try_another()
            return
        if parsed is not None and self._questions[0].is_answered_by(parsed[0].body):
            del self._questions[0]
            self._ask(server, address)
        elif parsed is not None or not data or len(self._heard) >= LONGEST_ANSWER:
            self._try_another()

    def _on_proof_late(self, server: socket.socket) -> None:
        is_waiting = self._questions or (self._is_tls and not self._is_verified)
        if self._server is server and is_waiting:
            self._try_another()

    @property
    def _is_tls(self) -> bool:
        return self._server_address is not None and self._server_address.scheme == "https"

    def _try_another(self) -> None:
        """Nobody answers there, or another program does: ours may be elsewhere by now."""
        self._drop_server()
        self._try_later()

    def _watch(self) -> None:
        """Read from a side only while the other side takes what was read."""
        if self._is_over or self._server is None:
            return
        sides = (
            (self._client, self._to_client, self._to_server, self._on_client),
            (self._server, self._to_server, self._to_client, self._on_server),
        )
        for side, outgoing, waiting, call in sides:
            events = (WRITE if outgoing else 0) | (READ if not waiting else 0)
            if events:
                self._loop.watch(side.fileno(), events, call)
            else:
                self._loop.forget(side.fileno())

    def _on_client(self, events: int) -> None:
        assert self._server is not None
        if events & WRITE:
            self._to_client = self._send(self._client, self._to_client)
        if events & READ and not self._is_over:
            self._to_server = self._send(self._server, self._receive(self._client))
        self._watch()

    def _on_server(self, events: int) -> None:
        assert self._server is not None
        if events & WRITE:
            self._to_server = self._send(self._server, self._to_server)
        if events & READ and not self._is_over:
            self._to_client = self._send(self._client, self._receive(self._server))
        self._watch()

    def _receive(self, side: socket.socket) -> bytes:
        try:
            data = side.recv(_AT_ONCE)
        except BlockingIOError:
            return b""
        except OSError:
            data = b""
        if not data:
            # Neither side of HTTP sends on after it has closed. What came before was passed on
            # already: nothing is read while the other side has not taken the last piece.
            self.close()
        return data

    def _send(self, side: socket.socket, data: bytes) -> bytes:
        """What is left to send."""
        if not data or self._is_over:
            return b""
        try:
            return data[side.send(data) :]
        except BlockingIOError:
            return data
        except OSError:
            self.close()
            return b""


def _made_quick(side: socket.socket) -> socket.socket:
    side.setblocking(False)
    side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return side
