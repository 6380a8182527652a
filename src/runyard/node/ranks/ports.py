"""A port and an address at which the ranks of an attempt meet."""

from __future__ import annotations

import contextlib
import errno
import socket

from runyard.own_address import interface_address, look_up, name_with_suffix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_FIRST, _LAST = 15000, 32000
_TRIES = 500


class Port:
    """Free when it was taken, and nobody else of ours takes it until it is given back.

    Not held open: the rank that listens there is another process. So a name that the kernel keeps
    for this process keeps our other jobs away, the kernel's own ports for outgoing connections are
    avoided, and a choice at random makes it unlikely to meet somebody else's.
    """

    def __init__(self, allowed: tuple[int, int] | None = None) -> None:
        low, high = allowed or _quiet_range()
        self._held: socket.socket | None = None
        for number in _in_any_order(low, high):
            if self._claim(number):
                if is_free(number):
                    self.number = number
                    return
                self.give_back()
        raise OSError(f"no free port between {low} and {high}")

    def _claim(self, number: int) -> bool:
        """Take the name of this port. It is in no folder: however we end, it goes with us."""
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0runyard-port-{number}")
        except OSError as error:
            claim.close()
            # Where the system has no such names, the other two precautions are left.
            return error.errno != errno.EADDRINUSE
        self._held = claim
        return True

    def give_back(self) -> None:
        if self._held is not None:
            self._held.close()

    def __enter__(self) -> Port:
        return self

    def __exit__(self, *_: object) -> None:
        self.give_back()

    def hand_on(self) -> None:
        """Hold it for the program, too, that this process becomes."""
        if self._held is not None:
            self._held.set_inheritable(True)


def listen(allowed: tuple[int, int] | None) -> socket.socket:
    """A socket that listens: at any port, or at one of those that the network lets through."""
    if allowed is None:
        return socket.create_server(("", 0), backlog=1024)
    while True:
        # Where another job's rank is about to listen is not for us either.
        with Port(allowed) as port, contextlib.suppress(OSError):
            return socket.create_server(("", port.number), backlog=1024)


def _in_any_order(low: int, high: int) -> Iterator[int]:
    import random

    yield from random.SystemRandom().sample(range(low, high + 1), min(_TRIES, high - low + 1))


def is_free(number: int) -> bool:
    """Whether a program can listen there, on the old protocol and on the new one."""
    for family, every in ((socket.AF_INET, ""), (socket.AF_INET6, "::")):
        try:
            tried = socket.socket(family)
        except OSError:
            continue  # A kernel without it.
        with tried:
            try:
                tried.bind((every, number))
            except OSError as error:
                if error.errno in (errno.EADDRINUSE, errno.EACCES):
                    return False
    return True


def _quiet_range() -> tuple[int, int]:
    """Ports that the kernel does not give to outgoing connections."""
    with contextlib.suppress(OSError, ValueError):
        with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
            low = int(file.read().split()[0])
        if low > _FIRST + 1000:
            return _FIRST, min(_LAST, low - 1)
    return _FIRST, _LAST


def address(interface: str | None, suffix: str | None) -> str:
    """This machine as the job's other nodes reach it."""
    if interface:
        with contextlib.suppress(OSError):
            return interface_address(interface)
    host = socket.gethostname()
    named = name_with_suffix(host, suffix) if suffix else host
    return named if named == host or look_up(named) else host
