"""The port holder: a small process that keeps the server's port bound while the server is away.

    python -m runyard.port_holder --home STATE_FOLDER --sockets 3,4 --server 5 --meeting 6

Any user of the machine can bind the port of a dead server, and then receives what clients send:
keys. So the server starts this process, which has the same listening sockets. While the server
lives, the holder does nothing. If the server is killed, the holder answers 503, so that clients
keep their data and try again, until the next server takes over the sockets. If clients still ask
after five seconds, it starts that server itself: an agent on a node cannot, and would wait for the
next command that somebody types. It ends with an orderly end of the server, when the state folder
is gone, or a day after the last server.

Server and holder meet at an abstract Unix socket (Linux), and each side checks that the other is a
process of the same user. All users can see the names of such sockets, and bind one that is free. So
each holder has a name of its own, which nobody can foresee: its random part is in the state folder.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import struct
import sys
import time
from functools import partial
from pathlib import Path

from runyard.home import Home, read_discovery, write_whole
from runyard.proof import hash_key, prove

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Sequence

HOLD_SECONDS = "RUNYARD_HOLD_PORT_SECONDS"
"""Environment variable: how long the port is held without a server, for tests; 0: not at all."""
_DEFAULT_HOLD = 24 * 3600.0
_LOOK_SECONDS = 2.0
_PATIENCE_SECONDS = 5.0
_MOST_SOCKETS = 16
_MOST_CLIENTS = 256
_LONGEST_HEAD = 64 << 10
_TAKE, _END = b"t", b"e"
_TLS_HANDSHAKE = b"\x16"
# The first wait before the server is started again. It doubles each time, up to the longest, and
# begins anew after a server that has lived for the longest.
_RESTART_SECONDS, _LONGEST_RESTART = 5.0, 600.0
_BODY = b'{"error": "the server is away; it is started again in a moment"}'
_AWAY = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(_BODY), _BODY)
)


class Holder:
    """The server's side. While its connection is open, the holder leaves the port to the server."""

    def __init__(self, line: socket.socket, sockets: list[socket.socket]) -> None:
        self._line = line
        self.sockets = sockets
        """The sockets that it holds; the server uses them too."""

    def end(self) -> None:
        """Release the port; returns when the process has ended."""
        with contextlib.suppress(OSError):
            self._line.settimeout(_PATIENCE_SECONDS)
            self._line.sendall(_END)
            self._line.recv(1)
        self._line.close()

    def leave(self) -> None:
        """Disconnect without ending it: from now on it answers clients."""
        self._line.close()


def start_holder(home: Home, key: str, sockets: Sequence[socket.socket]) -> Holder | None:
    """A new holder of these sockets; None if there is to be none. OSError: it cannot be started."""
    import subprocess

    if sys.platform != "linux" or not _hold_seconds():
        return None
    write_whole(home.port_holder, os.urandom(16).hex() + "\n")
    ours, theirs = socket.socketpair()
    with (
        contextlib.ExitStack() as failing,
        theirs,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as meeting,
    ):
        failing.callback(ours.close)
        meeting.bind(_meeting_place(home, key))
        # Listen already now, so that others find the holder while it still starts.
        meeting.listen(8)
        handles = [bound.fileno() for bound in sockets]
        command = [sys.executable, "-m", "runyard.port_holder", "--home", str(home.path)]
        command += ["--sockets", ",".join(map(str, handles)), "--server", str(theirs.fileno())]
        process = subprocess.Popen(
            [*command, "--meeting", str(meeting.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[*handles, theirs.fileno(), meeting.fileno()],
            start_new_session=True,  # It survives the server's group and terminal.
            cwd="/",
        )
        failing.pop_all()
    process.returncode = 0  # It outlives this process; Popen must not warn about that.
    return Holder(ours, list(sockets))


def find_holder(
    home: Home, key: str, warn: Callable[[str], None] = lambda _: None
) -> Holder | None:
    """The holder of a state folder's port, which hands over the port; None if there is none."""
    if sys.platform != "linux":
        return None
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        line.settimeout(_PATIENCE_SECONDS)
        line.connect(_meeting_place(home, key))
        if not _is_ours(line):
            warn("a process of another user has the name of our port holder")
            raise PermissionError
        line.sendall(_TAKE)
        message, handles, _, _ = socket.recv_fds(line, 1, _MOST_SOCKETS)
        sockets = [socket.socket(fileno=handle) for handle in handles]
    except OSError:
        line.close()
        return None
    for bound in sockets:
        bound.set_inheritable(False)
    if not message or not sockets:
        line.close()
        return None
    return Holder(line, sockets)


def end_holder(home: Home, key: str) -> None:
    """Release the port of a server that is gone."""
    holder = find_holder(home, key)
    if holder is not None:
        for bound in holder.sockets:
            bound.close()
        holder.end()


def _meeting_place(home: Home, key: str) -> str:
    """Its name depends on the path too: a copy of the state folder has the same key.

    Holders of older versions have no random part.
    """
    try:
        part = home.port_holder.read_text("ascii").strip()
    except (OSError, ValueError):
        part = ""
    path = os.path.realpath(home.path)
    return "\0runyard-port-" + prove(hash_key(key), f"port holder{part}", path)[:40]


def _is_ours(peer: socket.socket) -> bool:
    _, uid, _ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return bool(uid == os.geteuid())


def _hold_seconds() -> float:
    return float(os.environ.get(HOLD_SECONDS) or _DEFAULT_HOLD)


class _Restart:
    """Starts the server again, after it was killed and while clients ask for it."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._wait = _RESTART_SECONDS
        self._at = 0.0
        self._server_began = time.monotonic()
        self._command: subprocess.Popen[bytes] | None = None
        self.is_wanted = False
        """A client has asked since the server was killed."""

    def on_server(self) -> None:
        self._server_began = time.monotonic()

    def on_killed(self) -> None:
        now = time.monotonic()
        if now - self._server_began > _LONGEST_RESTART:
            self._wait = _RESTART_SECONDS
        self.is_wanted, self._at = False, now + self._wait

    def look(self) -> None:
        if self._command is not None and self._command.poll() is not None:
            self._command = None
        if not self.is_wanted or self._command is not None or time.monotonic() < self._at:
            return
        import subprocess

        self._wait = min(2 * self._wait, _LONGEST_RESTART)
        self._at = time.monotonic() + self._wait
        with contextlib.suppress(OSError), self._home.crash_log.open("ab") as crash_log:
            self._command = subprocess.Popen(
                [sys.executable, "-m", "runyard", "server", "start"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=crash_log,
                start_new_session=True,
                cwd=self._home.path,
                env={**os.environ, "RUNYARD_HOME": str(self._home.path)},
            )


class _Process:
    """The holder itself: one thread that waits for a server, for clients, and for its end time."""

    def __init__(
        self,
        home: Home,
        sockets: list[socket.socket],
        server: socket.socket,
        meeting: socket.socket,
    ) -> None:
        discovery = read_discovery(home)
        if discovery is None:
            raise SystemExit(1)
        self._home, self._key = home, discovery.key
        self._restart = _Restart(home)
        self._sockets = sockets
        self._selector = selectors.DefaultSelector()
        self._meeting = meeting
        self._selector.register(meeting, selectors.EVENT_READ, self._meet)
        # Clients that get the answer 503, and until when they may read it.
        self._clients: dict[socket.socket, float] = {}
        self._server: socket.socket | None = server
        self._until = 0.0
        self._selector.register(server, selectors.EVENT_READ, partial(self._hear, server))

    def work(self) -> None:
        while self._server is not None or time.monotonic() < self._until:
            quiet = self._server is not None and not self._clients
            for key, _ in self._selector.select(None if quiet else _LOOK_SECONDS):
                call: Callable[[], None] = key.data
                call()
            now = time.monotonic()
            for client in [client for client, end in self._clients.items() if end < now]:
                self._drop(client)
            if self._server is None:
                if not self._has_folder():
                    return
                if self._is_named():
                    self._restart.look()

    def _has_folder(self) -> bool:
        """Whether the state folder still exists, with the same key."""
        discovery = read_discovery(self._home)
        return discovery is not None and discovery.key == self._key

    def _is_named(self) -> bool:
        """Whether the next server will ask this holder for the port, and no newer one."""
        return bool(self._meeting.getsockname() == _meeting_place(self._home, self._key).encode())

    def _meet(self) -> None:
        peer, _ = self._meeting.accept()
        if not _is_ours(peer):
            peer.close()
            return
        self._selector.register(peer, selectors.EVENT_READ, partial(self._hear, peer))

    def _hear(self, peer: socket.socket) -> None:
        try:
            message = peer.recv(1)
        except OSError:
            message = b""
        if message == _END:
            os._exit(0)  # At once: the other side waits for the end of this process.
        if message == _TAKE:
            self._let_serve(peer)
            return
        self._selector.unregister(peer)
        peer.close()
        if peer is self._server:
            self._serve_in_its_place()

    def _let_serve(self, peer: socket.socket) -> None:
        if self._server is None:
            for bound in self._sockets:
                self._selector.unregister(bound)
        self._server = peer
        self._restart.on_server()
        with contextlib.suppress(OSError):  # It has just died; the next event is its end.
            socket.send_fds(peer, [_TAKE], [bound.fileno() for bound in self._sockets])

    def _serve_in_its_place(self) -> None:
        self._server, self._until = None, time.monotonic() + _hold_seconds()
        self._restart.on_killed()
        for bound in self._sockets:
            bound.setblocking(False)
            self._selector.register(bound, selectors.EVENT_READ, partial(self._accept, bound))

    def _accept(self, bound: socket.socket) -> None:
        try:
            client, _ = bound.accept()
        except OSError:  # The client has disconnected again.
            return
        if len(self._clients) >= _MOST_CLIENTS:
            self._drop(next(iter(self._clients)))
        client.setblocking(False)
        self._clients[client] = time.monotonic() + _PATIENCE_SECONDS
        self._selector.register(client, selectors.EVENT_READ, partial(self._answer, client, [b""]))

    def _answer(self, client: socket.socket, head: list[bytes]) -> None:
        """Read the request, answer 503, and wait until the client has read the answer.

        If the connection were closed with unread data, the client would lose the answer.
        """
        try:
            data = client.recv(_LONGEST_HEAD)
            self._restart.is_wanted |= bool(data)
            if data[:1] == _TLS_HANDSHAKE and not head[0]:
                data = b""  # A TLS client cannot read an answer here; it will connect again.
            if data and b"\r\n\r\n" not in head[0]:
                head[0] = (head[0] + data)[-_LONGEST_HEAD:]
                if b"\r\n\r\n" in head[0]:
                    client.send(_AWAY)
                    client.shutdown(socket.SHUT_WR)
        except OSError:
            data = b""
        if not data:
            self._drop(client)

    def _drop(self, client: socket.socket) -> None:
        del self._clients[client]
        self._selector.unregister(client)
        client.close()


def main(words: Sequence[str]) -> None:
    """The arguments come from `start_holder`."""
    options = dict(zip(words[::2], words[1::2], strict=True))
    sockets = [socket.socket(fileno=int(handle)) for handle in options["--sockets"].split(",")]
    server, meeting = (
        socket.socket(fileno=int(options[name])) for name in ("--server", "--meeting")
    )
    _Process(Home(Path(options["--home"])), sockets, server, meeting).work()


if __name__ == "__main__":
    main(sys.argv[1:])
