"""Another user of the machine, at a port that was our server's: records all that is sent there."""

from __future__ import annotations

import base64
import contextlib
import re
import socket
import threading

_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


class Stranger:
    """Answers each request with `answer`; or passes everything on to `server`, a port here."""

    def __init__(self, port: int = 0, answer: bytes = _ANSWER, server: int | None = None) -> None:
        self._answer, self._server = answer, server
        self._listening = socket.socket()
        self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listening.bind(("127.0.0.1", port))
        self._listening.listen(64)
        self.port: int = self._listening.getsockname()[1]
        self.heard = b""
        self.connections = 0

    def __enter__(self) -> Stranger:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def keys(self) -> set[str]:
        """What he can use as a key: of all that was sent, whatever a client would send as one."""
        tokens = re.findall(rb"(?i)authorization: *basic +(\S+)", self.heard)
        return {base64.b64decode(token).decode().partition(":")[2] for token in tokens}

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                self.connections += 1
                threading.Thread(target=self._hear, args=(client,), daemon=True).start()

    def _hear(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError), contextlib.ExitStack() as closing:
            server = None
            if self._server is not None:
                server = closing.enter_context(
                    socket.create_connection(("127.0.0.1", self._server))
                )
                threading.Thread(target=_carry, args=(server, client), daemon=True).start()
            while data := client.recv(1 << 16):
                self.heard += data
                if server is not None:
                    server.sendall(data)
                elif b"\r\n\r\n" in data:
                    client.sendall(self._answer)


def _carry(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
