"""A door on this node that leads to the server, wherever the server is by now.

A program keeps the address that it was started with, and its server may move: from link to link of
a job of its own, or to another port. So programs are told this door's address, which stays for as
long as they live, and each connection through it goes to where the state folder says.

It is a process of its own, forked by the agent or by `runyard run`: gigabytes that a program
uploads take nothing from the agent's loop. The agent and its keeper hold the door too, so nobody
else on the node can ever stand behind it while a program of ours might send its key there. Whoever
it leads to has to prove first that it is our server (`proof.py`): what comes through the door
carries keys.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import time
from functools import partial

from runyard.node.channel import parse_answer
from runyard.node.loop import READ, WRITE, Loop
from runyard.node.place import Place, home_folder, scheme
from runyard.node.processes import fork_twin, group_lives
from runyard.node.threshold import Threshold
from runyard.proof import LONGEST_ANSWER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from runyard.node.place import Found
    from runyard.proof import Question

_LOOPBACK = "127.0.0.1"
_AT_ONCE = 1 << 18
_BACKLOG = 512
_PAUSES = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0)
# A move takes seconds. Who waits longer is better off asking anew, which its client does by itself.
_PATIENCE_SECONDS = 25.0
_LOOK_SECONDS = 5.0
# A stranger in the server's place may never answer.
_PROOF_SECONDS = 5.0


class Door:
    """Its opener's side: a port of this node's loopback, and the process behind it."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._listening = _open()
        # Bytes pass as they are: the server's certificate is good for the loopback, too.
        self.url = f"{scheme(home)}://{_LOOPBACK}:{self._listening.getsockname()[1]}"
        # Its writing end is open in every process that needs the door: its opener, a keeper.
        self._leash, self._held = os.pipe()
        self.pid = 0

    @property
    def handles(self) -> tuple[int, int]:
        """What a keeper must leave open: then the door is ours for as long as it lives."""
        return self._listening.fileno(), self._held

    def open(self) -> None:
        """Let connections through; also after the process behind the door was killed."""
        self.pid = fork_twin(self._serve, (self._listening.fileno(), self._leash))

    def outlive_us_with(self, group: int) -> None:
        """If we are killed, the door stays for as long as a process of this group lives."""
        os.write(self._held, b"%d\n" % group)

    def _serve(self) -> None:
        loop = Loop()
        relay = Relay(loop, Place(self._home, lambda _words: None), self._listening)
        said: list[bytes] = []
        loop.watch(self._leash, READ, lambda _events: said.append(os.read(self._leash, 64)))
        while b"" not in said:
            loop.turn()
        loop.forget(self._leash)
        group = int(b"".join(said) or 0)
        while group and group_lives(group):
            loop.turn(_LOOK_SECONDS)
        relay.close()


class Relay:
    """Accepts connections and carries bytes to and from the server."""

    def __init__(
        self, loop: Loop, place: Place, listening: socket.socket, address: str | None = None
    ) -> None:
        """`address`: which is ours for those who have to be shown first that we are no stranger."""
        self._loop = loop
        self._address = address
        self._place = place
        self._listening = listening
        self._passages: set[Passage] = set()
        listening.setblocking(False)
        loop.watch(listening.fileno(), READ, self._accept)

    def close(self) -> None:
        self._loop.forget(self._listening.fileno())
        for passage in list(self._passages):
            passage.close()

    def _accept(self, _events: int) -> None:
        # One at a time: where there are more, the loop tells at once.
        try:
            client, _ = self._listening.accept()
        except OSError:  # It went away again, or we have no more descriptors: later.
            return
        if self._address is None:
            self._let_in(client)
        else:
            Threshold(self._loop, self._place, self._address, client, self._let_in)

    def _let_in(self, client: socket.socket) -> None:
        passage = Passage(self._loop, self._place, client, self._passages.discard)
        self._passages.add(passage)
        passage.begin()


class Passage:
    """One connection of a program, and ours to the server."""

    def __init__(
        self, loop: Loop, place: Place, client: socket.socket, on_end: Callable[[Passage], None]
    ) -> None:
        self._loop = loop
        self._place = place
        self._on_end = on_end
        self._client = _made_quick(client)
        self._server: socket.socket | None = None
        self._found: Found | None = None
        self._questions: list[Question] = []
        self._heard = b""
        self._tries = 0
        self._until = time.monotonic() + _PATIENCE_SECONDS
        self._to_server = b""
        self._to_client = b""
        self._is_over = False

    def begin(self) -> None:
        """Connect to the server; a client that comes while it moves waits here."""
        if self._is_over:
            return
        self._found = found = self._place.find()
        if found is None:
            self._try_later()
            return
        try:
            info = socket.getaddrinfo(found.host, found.port, type=socket.SOCK_STREAM)[0]
            made = _made_quick(socket.socket(info[0], socket.SOCK_STREAM))
        except OSError:
            self._try_later()
            return
        self._server = made
        try:
            made.connect(info[4])
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
        if self._server is not None:
            self._loop.forget(self._server.fileno())
            self._server.close()
            self._server = None

    def _try_later(self) -> None:
        if time.monotonic() >= self._until:
            self.close()
            return
        pause = _PAUSES[min(self._tries, len(_PAUSES) - 1)]
        self._tries += 1
        self._loop.after(pause, self.begin)

    def _on_connected(self, _events: int) -> None:
        assert self._server is not None
        assert self._found is not None
        if self._server.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self._try_another()
            return
        self._questions = self._found.questions()
        self._loop.after(_PROOF_SECONDS, partial(self._on_proof_late, self._server))
        self._ask(self._server, self._found)

    def _ask(self, server: socket.socket, found: Found) -> None:
        """Let the server prove who it is; then carry what the client sends."""
        if not self._questions:
            self._watch()
            return
        self._heard = b""
        try:
            server.send(found.encoded(self._questions[0]))
        except OSError:
            self._try_another()
        else:
            self._loop.watch(server.fileno(), READ, partial(self._on_proof, server, found))

    def _on_proof(self, server: socket.socket, found: Found, _events: int) -> None:
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
            self._ask(server, found)
        elif parsed is not None or not data or len(self._heard) >= LONGEST_ANSWER:
            self._try_another()

    def _on_proof_late(self, server: socket.socket) -> None:
        if self._server is server and self._questions:
            self._try_another()

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


def main(words: list[str] | None = None) -> int:
    """On the first node of a job: the others come through here, where they have no other way.

    Where it is, it writes to a file of the job's own folder, which it removes when it ends.
    """
    (path,) = sys.argv[1:] if words is None else words
    home = home_folder()
    name, address = _known_as()
    listening = _open(address)
    port = listening.getsockname()[1]
    loop = Loop()
    place = Place(home, lambda _words: None, None)
    # Of TLS a relay has nothing to prove: who comes through it verifies the server itself.
    own = f"http://{name}:{port}" if scheme(home) == "http" else None
    relay = Relay(loop, place, listening, own)
    over: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.on_signal(number, over.append)
    loop.on_signal(signal.SIGUSR2, lambda _number: None)
    parent = os.getppid()
    aside = f"{path}.{os.getpid()}"
    with open(os.open(aside, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:  # noqa: PTH123
        file.write(f"{name} {port}\n")
    os.replace(aside, path)  # noqa: PTH105
    try:
        while not over and os.getppid() == parent:  # The job's script is gone: so are we.
            loop.turn(_LOOK_SECONDS)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)  # noqa: PTH108
        relay.close()
    return 0


def _known_as() -> tuple[str, str]:
    """By which name the other nodes of a job know this one, and the address to listen on."""
    for name in (os.environ.get("SLURMD_NODENAME"), socket.gethostname()):
        with contextlib.suppress(OSError, UnicodeError):
            if name:
                address = socket.gethostbyname(name)
                # A name that means the loopback here means this node to others.
                return name, "0.0.0.0" if address.startswith("127.") else address  # noqa: S104
    return socket.gethostname(), "0.0.0.0"  # noqa: S104


def _open(address: str = _LOOPBACK) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.bind((address, 0))
    listening.listen(_BACKLOG)
    return listening


def _made_quick(side: socket.socket) -> socket.socket:
    side.setblocking(False)
    side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return side


if __name__ == "__main__":
    sys.exit(main())
