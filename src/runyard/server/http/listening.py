"""Where the server listens: an address, or wherever the nodes of a cluster reach this machine.

What is asked for is kept over restarts, and looked up anew at each: a server that moves to another
machine has another address there.
"""

from __future__ import annotations

import fcntl
import ipaddress
import socket
import struct
from dataclasses import dataclass, replace

from runyard.errors import ServerError
from runyard.home import LISTEN_TO_CLUSTER as CLUSTER
from runyard.proof import LOOPBACK

_LOOPBACK = LOOPBACK[0]
_EVERYWHERE = ("0.0.0.0", "::", "")  # noqa: S104 - If it was asked for.
_GET_ADDRESS = 0x8915  # SIOCGIFADDR of Linux.
# Set aside for documentation (RFC 5737). Nothing is sent: the kernel only says by which way.
_SOMEWHERE = ("203.0.113.1", 9)


@dataclass(frozen=True)
class Listening:
    """What to bind, how others call it, and what to look up the next time."""

    addresses: tuple[str, ...]
    name: str
    asked: str
    ports: tuple[int, int] | None = None
    """The range that a firewall lets through; None: any."""


def find_listening(asked: str) -> Listening:
    """`asked`: an address, `cluster`, `cluster:INTERFACE`, or `cluster:+SUFFIX` of the host name;
    with `@LOW-HIGH` behind it, on a port of that range.

    Whoever listens to others listens to this machine's own programs too: those that were started
    before the server was opened go on.
    """
    where, _, ports = asked.partition("@")
    if ports:
        listening = replace(find_listening(where), ports=_read_ports(ports))
        # What is this machine's alone must be known as such: others may send no key there.
        return (
            listening
            if all(map(_is_loopback, listening.addresses))
            else replace(listening, asked=asked)
        )
    kind, _, which = asked.partition(":")
    if kind == CLUSTER and (which or asked == CLUSTER):
        return _for_cluster(asked, which)
    if asked in _EVERYWHERE:
        return Listening((asked,), socket.gethostname(), asked)
    alone = _is_loopback(asked)
    return Listening((asked,) if alone else (asked, _LOOPBACK), asked, asked)


def own_addresses(listening: Listening) -> list[str]:
    """The addresses that it is reached by: what it listens on, or all of the machine's."""
    if not any(address in _EVERYWHERE for address in listening.addresses):
        return list(listening.addresses)
    addresses = [_address_of_or_none(name) for _, name in socket.if_nameindex()]
    return [address for address in (*addresses, _own_address()) if address is not None]


def _read_ports(text: str) -> tuple[int, int]:
    low, _, high = text.partition("-")
    if not (low.isdecimal() and high.isdecimal() and 0 < int(low) <= int(high) < 65_536):
        raise ServerError(
            f"{text!r} is no range of ports", mend="LOW-HIGH, as in cluster@6000-6100"
        )
    return int(low), int(high)


def _for_cluster(asked: str, which: str) -> Listening:
    if which.startswith("+"):
        name = _with_suffix(socket.gethostname(), which[1:])
        address = _look_up(name)
        if address is None:
            raise ServerError(
                f"no name server knows {name}",
                mend="the profile's network.address_suffix is not right for this machine: "
                "`runyard server start --listen ADDRESS` takes an address",
            )
        return Listening((address, _LOOPBACK), name, asked)
    address = _address_of(which) if which else _own_address()
    if address is None:
        # A machine without a network: those who could come are here already.
        return Listening((_LOOPBACK,), _LOOPBACK, _LOOPBACK)
    return Listening((address, _LOOPBACK), address, asked)


def _with_suffix(host: str, suffix: str) -> str:
    """`jwb0001.juwels` and `i` make `jwb0001i.juwels`; `.site` goes behind it all."""
    if suffix.startswith("."):
        return host + suffix
    first, dot, rest = host.partition(".")
    return f"{first}{suffix}{dot}{rest}"


def _own_address() -> str | None:
    """The address by which this machine's name is known; or by which it goes to others."""
    address = _look_up(socket.gethostname())
    if address is not None and not _is_loopback(address):
        return address
    # Debian notes a loopback address for a machine's own name.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_SOMEWHERE)
        except OSError:
            return None
        outgoing: str = probe.getsockname()[0]
    return None if _is_loopback(outgoing) else outgoing


def _address_of(interface: str) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            request = struct.pack("256s", interface.encode()[:15])
            answer = fcntl.ioctl(probe.fileno(), _GET_ADDRESS, request)
        except OSError as error:
            known = ", ".join(name for _, name in socket.if_nameindex())
            raise ServerError(
                f"this machine has no network interface {interface!r} with an address",
                said=error.strerror,
                mend=f"it has {known}: name one, as in --listen cluster:{interface}",
            ) from error
    return socket.inet_ntoa(answer[20:24])


def _address_of_or_none(interface: str) -> str | None:
    try:
        return _address_of(interface)
    except ServerError:
        return None


def _look_up(name: str) -> str | None:
    try:
        addresses = socket.getaddrinfo(name, None, socket.AF_INET, socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return None
    return str(addresses[0][4][0])


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"
