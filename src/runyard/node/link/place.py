"""Where the server is, found anew for every connection; and its rescue where it is gone."""

from __future__ import annotations

import binascii
import json
import os
import socket
import sys
import time

from runyard.locks import FolderLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from runyard.proof import Question

    class Server(Protocol):
        """Where requests go: `Place`, or a sweep elsewhere."""

        address: ServerAddress | None

        def find(self) -> ServerAddress | None: ...

        def is_silent(self) -> None: ...

        def hand(self, key: str) -> None: ...

        def is_outdated(self, token: str) -> bool: ...


_RESCUE_EVERY = 5.0
# Names the file in which a job's first node says where it relays.
RELAY = "RUNYARD_RELAY"


def home_folder() -> str:
    """The state folder, as `home.locate` has it, with fewer files to load."""
    named = os.environ.get("RUNYARD_HOME") or "~/.runyard"
    return os.path.abspath(os.path.expanduser(named))


def moves(home: str) -> bool:
    """Whether the server is a job, and so is now here, now there."""
    return os.path.exists(f"{home}/server-jobs.json")


def scheme(home: str) -> str:
    """Whether the server speaks plain HTTP or TLS."""
    try:
        with open(f"{home}/server.json", encoding="utf-8") as file:
            return str(json.load(file)["url"]).partition("://")[0]
    except (OSError, ValueError, LookupError, TypeError):
        return "http"


class ServerAddress:
    """The server's address and key, as the discovery file of the state folder has them."""

    __slots__ = (
        "authority", "handed", "host", "is_elsewhere", "key", "on_this_machine", "page", "port",
        "public_url", "scheme", "tls_ca", "token", "url",
    )  # fmt: skip

    def __init__(self, discovery: dict[str, str], here: str) -> None:
        self.url = self.page = discovery["url"]
        # A server of an older release wrote one key alone.
        self.key = discovery.get("node_key") or discovery["key"]
        # http://HOST:PORT, with HOST in brackets where it is IPv6.
        self.scheme, _, rest = self.url.partition("://")
        name, _, port = rest.partition("/")[0].rpartition(":")
        if not name or not port.isdecimal():
            name, port = rest.partition("/")[0], "443" if self.scheme == "https" else "80"
        self.host, self.port = name.strip("[]"), int(port)
        self.token = _token(self.key)
        self.handed: str | None = None
        """For programs: a key of their own, which opens no more than runs."""
        self.on_this_machine = discovery["hostname"] == here
        self.authority = discovery.get("authority") or ""
        """The certificate by which the server is believed, where it speaks TLS."""
        self.tls_ca = discovery.get("tls_ca") or ""
        self.public_url = discovery.get("public_url") or ""
        self.is_elsewhere = False
        """Whether it is not the state folder's, but somebody else's."""

    def use(self, handed: str | None) -> None:
        """Speak with the key that was handed out to us, and give it to programs."""
        self.handed = handed
        self.token = _token(handed or self.key)

    def questions(self) -> list[Question]:
        """What has to be answered on a new connection, in this order, before it carries a key.

        On the way through a job's first node the relay there answers first, for its own address. A
        server elsewhere was named by the user, and is no state folder's: it is not asked. Where the
        server speaks TLS, its certificate is the proof, for us and for programs behind a door.
        """
        if self.is_elsewhere or self.scheme == "https":
            return []
        from runyard.proof import Question  # Where there is a connection to prove.

        addresses = [self.page] if self.url == self.page else [self.url, self.page]
        return [Question(self.key, address) for address in addresses]

    def encoded(self, question: Question) -> bytes:
        return f"GET {question.path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\n\r\n".encode()


def _token(key: str) -> str:
    # `base64` would bring in three more files.
    return binascii.b2a_base64(f"api:{key}".encode(), newline=False).decode()


class Place:
    """The server of a state folder.

    `spawn` starts a command beside us; where the server should be on this machine and is not, it
    is started again so.
    """

    def __init__(
        self,
        home: str,
        spawn: Callable[[list[str]], None],
        relay: str | None = os.environ.get(RELAY),
    ) -> None:
        self._home = home
        self._lock = FolderLock(f"{home}/server.lock")
        self._spawn = spawn
        self._relay = relay
        self._here = socket.gethostname()
        self._rescued_at = -_RESCUE_EVERY
        # What the state folder said last. Where it is not to be seen, nothing is started either.
        self._belongs_here = False
        self._handed: str | None = None
        self.address: ServerAddress | None = None

    def find(self) -> ServerAddress | None:
        """Where to connect to; None where nobody is, or nobody who may see the key."""
        try:
            with open(f"{self._home}/server.json", encoding="utf-8") as file:
                discovery = json.load(file)
            address = ServerAddress(discovery, self._here)
            address.use(self._handed)
            self._belongs_here = address.on_this_machine
            if self._relay is not None:
                self.address = address = self._through(address)
                return address
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return None
        from runyard.proof import LOOPBACK  # The same: an agent's start loads few files.

        # A dead server's port can be taken by any user of the machine: ask only while ours lives.
        may_ask = (
            not self._lock.is_free()
            if address.on_this_machine
            else discovery["listen"] not in LOOPBACK
        )
        self.address = address if may_ask else self.address
        return address if may_ask else None

    def hand(self, key: str) -> None:
        """From now on this key, which the server made for us and our programs."""
        self._handed = key
        if self.address is not None:
            self.address.use(key)

    def is_outdated(self, token: str) -> bool:
        """Whether a request was refused for a handed key, which is then used no more."""
        address = self.address
        if address is None or token == _token(address.key):
            return False
        if token == address.token:
            self._handed = None
            address.use(None)
        return True

    def _through(self, address: ServerAddress) -> ServerAddress:
        """The server by way of the job's first node, which says where in a file of our own."""
        with open(str(self._relay), encoding="utf-8") as file:
            host, port = file.read().split()
        # TLS goes through the relay as it is: the server itself answers, under its one name.
        address.host, address.port, address.url = (
            host,
            int(port),
            f"{address.scheme}://{host}:{port}",
        )
        address.on_this_machine = False
        return address

    def is_silent(self) -> None:
        """Nobody answered, more than once: see that the server is started again."""
        now = time.monotonic()
        # A server that is a job is brought back by the next job.
        belongs_here = self._belongs_here and not moves(self._home)
        if belongs_here and now - self._rescued_at >= _RESCUE_EVERY:
            self._rescued_at = now
            self._spawn([sys.executable, "-m", "runyard", "server", "start"])
