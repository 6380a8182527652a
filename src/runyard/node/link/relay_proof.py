"""The relay of a job's first node proves who it is to those who come through it.

A killed relay's port is anybody's, as a dead server's is. So whoever comes asks the relay first, as
it asks the server: the answer names the relay's own address.
"""

from __future__ import annotations

import contextlib
import socket

from runyard.node.system.loop import READ
from runyard.proof import LONGEST_ANSWER, PROOF_PATH, hash_key, prove

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from runyard.node.link.place import Place
    from runyard.node.system.loop import Loop

_QUESTION_SECONDS = 5.0


class RelayProof:
    """One connection, until its question is answered; then `let_in` has it."""

    def __init__(
        self,
        loop: Loop,
        place: Place,
        address: str,
        client: socket.socket,
        let_in: Callable[[socket.socket], None],
    ) -> None:
        self._loop = loop
        self._place = place
        self._address = address
        self._client = client
        self._let_in = let_in
        self._head = b""
        client.setblocking(False)
        self._timer = loop.after(_QUESTION_SECONDS, self._close)
        loop.watch(client.fileno(), READ, self._read)

    def _read(self, _events: int) -> None:
        try:
            data = self._client.recv(LONGEST_ANSWER)
        except OSError:
            data = b""
        self._head += data
        is_whole = self._head.endswith(b"\r\n\r\n")
        if not data or len(self._head) > LONGEST_ANSWER:
            self._close()
        elif is_whole:
            self._answer()

    def _answer(self) -> None:
        path, _, query = self._head.split(b" ", 2)[1].decode(errors="replace").partition("?")
        nonce = dict(part.partition("=")[::2] for part in query.split("&")).get("nonce", "")
        server = self._place.find() or self._place.address
        if path != PROOF_PATH or server is None:
            self._close()
            return
        body = f'{{"proof":"{prove(hash_key(server.key), nonce, self._address)}"}}'
        with contextlib.suppress(OSError):  # Then the next one to read from it finds that out.
            self._client.send(
                f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
            )
        self._timer.cancel()
        self._loop.forget(self._client.fileno())
        self._let_in(self._client)

    def _close(self) -> None:
        self._timer.cancel()
        self._loop.forget(self._client.fileno())
        self._client.close()
