"""Requests to the server over one connection, without waiting for any of them.

Every route of ours can be repeated, so a channel never fails: what has no answer is sent again, to
wherever the server is by then. `http.client` would do, but brings in more files than the rest of
the agent together, and it waits. Nothing is sent on a new connection before the server has proved
who it is (`proof.py`).
"""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections import deque

from runyard.node.link.lookup import find_address
from runyard.node.system.loop import READ, WRITE
from runyard.proof import LONGEST_ANSWER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from runyard.node.link.lookup import Address, Lookup
    from runyard.node.link.place import Server, ServerAddress
    from runyard.node.system.loop import Loop, Timer
    from runyard.proof import Question
    from runyard.trust import TlsBytes

_RECONNECT_PAUSES = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0)
# A server that answers with its own trouble is there, and has enough to do.
_SERVER_ERROR_PAUSES = (0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0)
ANSWER_SECONDS = 30.0
# How long what is left to tell may take at the end.
DELIVERY_SECONDS = 30.0
_READ_AT_ONCE = 1 << 16


class Answer:
    """What the server said."""

    __slots__ = ("body", "status")

    def __init__(self, status: int, body: bytes) -> None:
        self.status = status
        self.body = body

    @property
    def is_good(self) -> bool:
        return self.status < 300

    def json(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError:
            return {}

    @property
    def error(self) -> str:
        content = self.json()
        reason = content.get("error") if isinstance(content, dict) else None
        return str(reason or self.body[:200].decode(errors="replace") or f"status {self.status}")


class Trouble:
    """The server answers, and cannot do what is asked: to which request, since when."""

    __slots__ = ("error", "path", "since", "status", "times")

    def __init__(self, path: str) -> None:
        self.path = path
        self.since = time.monotonic()
        self.times = 0
        self.status = 0
        self.error = ""


class _Request:
    __slots__ = ("body", "kind", "on_answer", "path", "seconds", "token")

    def __init__(
        self, path: str, body: bytes, kind: str, seconds: float, on_answer: Callable[[Answer], None]
    ) -> None:
        self.path = path
        self.body = body
        self.kind = kind
        self.seconds = seconds
        self.on_answer = on_answer
        self.token = ""
        """With which it was sent."""


class Channel:
    """Requests are sent at once and in order; answers come in the same order."""

    def __init__(self, loop: Loop, place: Server) -> None:
        self._loop = loop
        self._place = place
        self._lookup: Lookup | None = None
        self._socket: socket.socket | None = None
        self._tls: TlsBytes | None = None
        self._questions: list[Question] = []
        """What has to be answered before anything else is sent."""
        self._unanswered: deque[_Request] = deque()
        self._outgoing = b""
        self._incoming = b""
        self._tries = 0
        self._retry: Timer | None = None
        self._deadline: Timer | None = None
        self.silent_since: float | None = None
        """Since when the server has not been reached; None while all is well."""
        self.trouble: Trouble | None = None
        """What the server says of itself instead of an answer; None while all is well."""

    @property
    def is_idle(self) -> bool:
        return not self._unanswered

    def post(
        self,
        path: str,
        payload: object,
        on_answer: Callable[[Answer], None],
        *,
        seconds: float = ANSWER_SECONDS,
    ) -> None:
        """Send JSON, or bytes as they are. `seconds`: how long an answer may take."""
        raw = isinstance(payload, bytes)
        body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        kind = "application/octet-stream" if raw else "application/json"
        request = _Request(path, body, kind, seconds, on_answer)
        self._unanswered.append(request)
        if self._socket is not None:
            if not self._questions:
                self._outgoing += self._sealed(self._encoded(request))
                self._write()
            self._watch_time()
        elif self._retry is None and self._lookup is None:
            self._connect()

    def announce_leaving(self, claim: dict[str, Any]) -> None:
        """A trial is about to be cut off. Ours hears of it with its end; others want it before."""

    def take_back_last(self) -> None:
        """Forget the last request; those before it are sent again on a new connection."""
        self._unanswered.pop()
        self._close()

    def drop(self) -> None:
        """Forget every request that has no answer, and the connection with them."""
        self._unanswered.clear()
        self._close()
        self.trouble = None
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None

    def _connect(self) -> None:
        self._retry = None
        if not self._unanswered:
            return
        address = self._place.find()
        if address is None:
            self._wait_and_retry()
            return
        self._lookup = find_address(
            self._loop, address.host, address.port, lambda target: self._begin(address, target)
        )

    def _begin(self, address: ServerAddress, target: Address | None) -> None:
        self._lookup = None
        if target is None:
            self._wait_and_retry()
            return
        try:
            made = socket.socket(target[0], socket.SOCK_STREAM)
            made.setblocking(False)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._tls = begin_tls(address) if address.scheme == "https" else None
            with contextlib.suppress(BlockingIOError):
                made.connect(target[1])
        except OSError:
            self._wait_and_retry()
            return
        self._socket = made
        self._incoming = b""
        self._questions = address.questions()
        self._outgoing = self._sealed(self._first_words())
        self._loop.watch(made.fileno(), READ | WRITE, self._on_event)
        self._watch_time()

    def _first_words(self) -> bytes:
        """What is to be said next on a connection that may not have proved itself yet."""
        if self._questions:
            assert self._place.address is not None
            return self._place.address.encoded(self._questions[0])
        return b"".join(map(self._encoded, self._unanswered))

    def _encoded(self, request: _Request) -> bytes:
        address = self._place.address
        assert address is not None
        request.token = address.token
        head = (
            f"POST {request.path} HTTP/1.1\r\nHost: {address.host}:{address.port}\r\n"
            f"Authorization: Basic {address.token}\r\nContent-Type: {request.kind}\r\n"
            f"Content-Length: {len(request.body)}\r\n\r\n"
        )
        return head.encode() + request.body

    def _sealed(self, plain: bytes) -> bytes:
        return plain if self._tls is None else self._tls.send(plain)

    def _opened(self, wire: bytes) -> bytes:
        """What came, in plain; nothing of ours goes out before the server has proved itself."""
        if self._tls is None:
            return wire
        plain, answer = self._tls.receive(wire)
        if answer:
            self._outgoing += answer
            self._write()
        return plain

    def _on_event(self, events: int) -> None:
        if events & WRITE:
            self._write()
        if events & READ:
            self._read()

    def _write(self) -> None:
        if self._socket is None:
            return
        try:
            if self._outgoing:
                self._outgoing = self._outgoing[self._socket.send(self._outgoing) :]
        except BlockingIOError:
            pass
        except OSError:
            self._broken()
            return
        events = READ | WRITE if self._outgoing else READ
        self._loop.watch(self._socket.fileno(), events, self._on_event)

    def _read(self) -> None:
        if self._socket is None:
            return
        try:
            data = self._socket.recv(_READ_AT_ONCE)
            plain = self._opened(data) if data else b""
        except BlockingIOError:
            return
        except OSError:  # Of the network, or of TLS: a certificate that is not our server's.
            data = b""
        if not data:
            self._broken()
            return
        self._incoming += plain
        while self._socket is not None:
            try:
                parsed = parse_answer(self._incoming)
            except (ValueError, IndexError):
                self._broken()  # What speaks there does not speak HTTP.
                return
            if parsed is None:
                if self._questions and len(self._incoming) > LONGEST_ANSWER:
                    self._broken()
                return
            answer, self._incoming = parsed
            self._take(answer)

    def _take(self, answer: Answer) -> None:
        if self._questions:
            self._take_proof(answer)
            return
        if answer.status >= 500 or answer.status == 429:
            self._in_trouble(answer)
            return
        self._tries = 0
        self.silent_since = self.trouble = None
        if not self._unanswered:
            self._broken()  # Nobody asked: what speaks there is not our server.
            return
        request = self._unanswered[0]
        if answer.status == 401 and self._place.is_outdated(request.token):
            self._close()
            self._connect()
            return
        self._unanswered.popleft()
        self._watch_time()
        request.on_answer(answer)

    def _take_proof(self, answer: Answer) -> None:
        if not self._questions[0].is_answered_by(answer.body):
            self._broken()  # Another program, or nobody yet: the next connection may be to ours.
            return
        del self._questions[0]
        self._outgoing = self._sealed(self._first_words())
        self._write()

    def _in_trouble(self, answer: Answer) -> None:
        """Its own trouble, which mostly passes: a full disk, a start; or a bug."""
        self._close()
        if not self._unanswered:
            return
        path = self._unanswered[0].path.partition("?")[0]
        if self.trouble is None or self.trouble.path != path:
            self.trouble = Trouble(path)
        self.trouble.status, self.trouble.error = answer.status, answer.error
        pause = _SERVER_ERROR_PAUSES[min(self.trouble.times, len(_SERVER_ERROR_PAUSES) - 1)]
        self.trouble.times += 1
        if self._retry is None:
            self._retry = self._loop.after(pause, self._connect)

    def _watch_time(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if self._unanswered and self._socket is not None:
            self._deadline = self._loop.after(self._unanswered[0].seconds, self._broken)

    def _broken(self) -> None:
        was_idle = not self._unanswered
        self._close()
        if not was_idle:
            self._wait_and_retry()

    def _close(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if self._lookup is not None:
            self._lookup.cancel()
            self._lookup = None
        if self._socket is not None:
            self._loop.forget(self._socket.fileno())
            self._socket.close()
            self._socket = None

    def _wait_and_retry(self) -> None:
        if self.silent_since is None:
            self.silent_since = time.monotonic()
        pause = _RECONNECT_PAUSES[min(self._tries, len(_RECONNECT_PAUSES) - 1)]
        self._tries += 1
        if self._tries > 1:
            self._place.is_silent()
        if self._retry is None:
            self._retry = self._loop.after(pause, self._connect)


def begin_tls(address: ServerAddress) -> TlsBytes:
    """TLS to our server; OSError where there is nothing to verify it by."""
    from runyard.errors import ServerError  # `ssl` is large, and few need it.
    from runyard.trust import TlsBytes, pinned_context

    try:
        return TlsBytes(pinned_context(address.authority))
    except ServerError as error:  # `unreached` tells; server.json may be mended meanwhile.
        raise OSError(str(error)) from error


def parse_answer(data: bytes) -> tuple[Answer, bytes] | None:
    """The first whole answer in these bytes and what is behind it; None if it is not whole."""
    head, separator, rest = data.partition(b"\r\n\r\n")
    if not separator:
        return None
    lines = head.split(b"\r\n")
    status = int(lines[0].split(b" ", 2)[1])
    fields = {
        name.strip().lower(): value.strip().lower()
        for name, _, value in (line.partition(b":") for line in lines[1:])
    }
    if fields.get(b"transfer-encoding") == b"chunked":
        return _parse_chunks(status, rest)
    length = int(fields.get(b"content-length", b"0"))
    if status < 200 or len(rest) < length:
        return parse_answer(rest) if status < 200 else None
    return Answer(status, rest[:length]), rest[length:]


def _parse_chunks(status: int, rest: bytes) -> tuple[Answer, bytes] | None:
    body = b""
    while True:
        size, separator, rest = rest.partition(b"\r\n")
        if not separator:
            return None
        length = int(size.split(b";")[0], 16)
        if len(rest) < length + 2:
            return None
        body, rest = body + rest[:length], rest[length + 2 :]
        if length == 0:
            return Answer(status, body), rest
