"""Which address of this machine others reach: by a network interface, by its name, or by its route.

The server asks it for the address it listens on, a job's relay and the ranks of a job for the
address that the other nodes are given. The standard library only: nodes import it.
"""

from __future__ import annotations

import fcntl
import socket
import struct

_GET_ADDRESS = 0x8915  # SIOCGIFADDR of Linux.
# Set aside for documentation (RFC 5737). Nothing is sent: the kernel only says by which way.
_SOMEWHERE = ("203.0.113.1", 9)


def interface_address(interface: str) -> str:
    """The IPv4 address of a network interface; OSError where it has none."""
    request = struct.pack("256s", interface.encode()[:15])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        answer = fcntl.ioctl(probe.fileno(), _GET_ADDRESS, request)
    return socket.inet_ntoa(answer[20:24])


def name_with_suffix(host: str, suffix: str) -> str:
    """`jwb0001.juwels` and `i` make `jwb0001i.juwels`; `.site` goes behind it all."""
    if suffix.startswith("."):
        return host + suffix
    first, dot, rest = host.partition(".")
    return f"{first}{suffix}{dot}{rest}"


def look_up(name: str) -> str | None:
    """The IPv4 address of a name; None where no name server knows it."""
    try:
        addresses = socket.getaddrinfo(name, None, socket.AF_INET, socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return None
    return str(addresses[0][4][0])


def own_address() -> str | None:
    """The address by which this machine's name is known; or by which it goes to others."""
    address = look_up(socket.gethostname())
    if address is not None and not is_loopback(address):
        return address
    # Debian notes a loopback address for a machine's own name.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_SOMEWHERE)
        except OSError:
            return None
        outgoing: str = probe.getsockname()[0]
    return None if is_loopback(outgoing) else outgoing


def is_loopback(address: str) -> bool:
    import ipaddress  # Not part of an agent's start.

    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"
