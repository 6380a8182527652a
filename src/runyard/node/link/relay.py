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

from runyard.node.link.place import Place, home_folder, scheme
from runyard.node.link.relay_connection import RelayConnection
from runyard.node.link.relay_proof import RelayProof
from runyard.node.system.loop import READ, Loop
from runyard.node.system.processes import fork_twin, group_lives
from runyard.own_address import is_loopback, look_up
from runyard.proof import LOOPBACK

_BACKLOG = 512
_LOOK_SECONDS = 5.0


class Door:
    """Its opener's side: a port of this node's loopback, and the process behind it."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._listening = _open()
        # Bytes pass as they are: the server's certificate is good for the loopback, too.
        self.url = f"{scheme(home)}://{LOOPBACK[0]}:{self._listening.getsockname()[1]}"
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
        lines: list[bytes] = []
        loop.watch(self._leash, READ, lambda _events: lines.append(os.read(self._leash, 64)))
        while b"" not in lines:
            loop.turn()
        loop.forget(self._leash)
        group = int(b"".join(lines) or 0)
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
        self._connections: set[RelayConnection] = set()
        listening.setblocking(False)
        loop.watch(listening.fileno(), READ, self._accept)

    def close(self) -> None:
        self._loop.forget(self._listening.fileno())
        for connection in list(self._connections):
            connection.close()

    def _accept(self, _events: int) -> None:
        # One at a time: where there are more, the loop tells at once.
        try:
            client, _ = self._listening.accept()
        except OSError:  # It went away again, or we have no more descriptors: later.
            return
        if self._address is None:
            self._let_in(client)
        else:
            RelayProof(self._loop, self._place, self._address, client, self._let_in)

    def _let_in(self, client: socket.socket) -> None:
        connection = RelayConnection(self._loop, self._place, client, self._connections.discard)
        self._connections.add(connection)
        connection.begin()


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
    with open(os.open(aside, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        file.write(f"{name} {port}\n")
    os.replace(aside, path)
    try:
        while not over and os.getppid() == parent:  # The job's script is gone: so are we.
            loop.turn(_LOOK_SECONDS)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)
        relay.close()
    return 0


def _known_as() -> tuple[str, str]:
    """By which name the other nodes of a job know this one, and the address to listen on."""
    from runyard.schedulers.inside import this_job  # Not part of an agent's start.

    for name in (this_job().node, socket.gethostname()):
        address = look_up(name) if name else None
        if name and address:
            # A name that means the loopback here means this node to others.
            bound = "0.0.0.0" if is_loopback(address) else address  # noqa: S104 - As below.
            return name, bound
    return socket.gethostname(), "0.0.0.0"  # noqa: S104 - Nodes are to reach it; it proves itself.


def _open(address: str = LOOPBACK[0]) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.bind((address, 0))
    listening.listen(_BACKLOG)
    return listening


if __name__ == "__main__":
    sys.exit(main())
