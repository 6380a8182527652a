"""A port and an address at which the ranks of an attempt meet."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import struct

_FIRST, _LAST = 15000, 32000
_TRIES = 500
_ADDRESS_OF = 0x8915  # SIOCGIFADDR


class Port:
    """Free when it was taken, and nobody else of ours takes it while this process lives.

    Not held open: the rank that listens there is another process. So a lock on this machine keeps
    our other jobs away, the kernel's own ports for outgoing connections are avoided, and a choice
    at random makes it unlikely to meet somebody else's.
    """

    def __init__(self, allowed: tuple[int, int] | None = None) -> None:
        low, high = allowed or _quiet_range()
        folder = f"{os.environ.get('TMPDIR') or '/tmp'}/runyard-{os.getuid()}-ports"  # noqa: S108
        with contextlib.suppress(OSError):
            os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103
        for _ in range(_TRIES):
            number = low + int.from_bytes(os.urandom(4), "big") % (high - low + 1)
            if self._lock(f"{folder}/{number}") and is_free(number):
                self.number = number
                return
        raise OSError(f"no free port between {low} and {high}")

    def _lock(self, path: str) -> bool:
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError:
            return True  # No place for locks: the other two precautions are left.
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            return False
        self._handle = handle  # Until this process ends.
        return True


def is_free(number: int) -> bool:
    with socket.socket(socket.AF_INET) as tried:
        try:
            tried.bind(("", number))
        except OSError:
            return False
    return True


def _quiet_range() -> tuple[int, int]:
    """Ports that the kernel does not give to outgoing connections."""
    with contextlib.suppress(OSError, ValueError):
        with open("/proc/sys/net/ipv4/ip_local_port_range") as file:  # noqa: PTH123
            low = int(file.read().split()[0])
        if low > _FIRST + 1000:
            return _FIRST, min(_LAST, low - 1)
    return _FIRST, _LAST


def address(interface: str | None, suffix: str | None) -> str:
    """This machine as the job's other nodes reach it."""
    if interface:
        found = _address_of(interface)
        if found is not None:
            return found
    name = socket.gethostname()
    if suffix:
        short, dot, rest = name.partition(".")
        named = f"{short}{suffix}{dot}{rest}"
        with contextlib.suppress(OSError):
            socket.gethostbyname(named)
            return named
    return name


def _address_of(interface: str) -> str | None:
    asked = struct.pack("256s", interface.encode()[:15])
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_one:
        return socket.inet_ntoa(fcntl.ioctl(any_one.fileno(), _ADDRESS_OF, asked)[20:24])
    return None
