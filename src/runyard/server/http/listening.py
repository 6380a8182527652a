"""Where the server listens: an address, or wherever the nodes of a cluster reach this machine.

What is asked for is kept over restarts, and looked up anew at each: a server that moves to another
machine has another address there.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass, replace

from runyard.errors import ServerError
from runyard.home import LISTEN_TO_CLUSTER as CLUSTER
from runyard.own_address import (
    interface_address,
    is_loopback,
    look_up,
    name_with_suffix,
    own_address,
)
from runyard.proof import LOOPBACK

_LOOPBACK = LOOPBACK[0]
_EVERYWHERE = ("0.0.0.0", "::", "")  # noqa: S104 - If it was asked for.


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
            if all(map(is_loopback, listening.addresses))
            else replace(listening, asked=asked)
        )
    kind, _, which = asked.partition(":")
    if kind == CLUSTER and (which or asked == CLUSTER):
        return _for_cluster(asked, which)
    if asked in _EVERYWHERE:
        return Listening((asked,), socket.gethostname(), asked)
    alone = is_loopback(asked)
    return Listening((asked,) if alone else (asked, _LOOPBACK), asked, asked)


def own_addresses(listening: Listening) -> list[str]:
    """The addresses that it is reached by: what it listens on, or all of the machine's."""
    if not any(address in _EVERYWHERE for address in listening.addresses):
        return list(listening.addresses)
    addresses = [_address_of_or_none(name) for _, name in socket.if_nameindex()]
    return [address for address in (*addresses, own_address()) if address is not None]


def _read_ports(text: str) -> tuple[int, int]:
    low, _, high = text.partition("-")
    if not (low.isdecimal() and high.isdecimal() and 0 < int(low) <= int(high) < 65_536):
        raise ServerError(
            f"{text!r} is no range of ports", mend="LOW-HIGH, as in cluster@6000-6100"
        )
    return int(low), int(high)


def _for_cluster(asked: str, which: str) -> Listening:
    if which.startswith("+"):
        name = name_with_suffix(socket.gethostname(), which[1:])
        address = look_up(name)
        if address is None:
            raise ServerError(
                f"no name server knows {name}",
                mend="the profile's network.address_suffix is not right for this machine: "
                "`runyard server start --listen ADDRESS` takes an address",
            )
        return Listening((address, _LOOPBACK), name, asked)
    address = _address_of(which) if which else own_address()
    if address is None:
        # A machine without a network: those who could come are here already.
        return Listening((_LOOPBACK,), _LOOPBACK, _LOOPBACK)
    return Listening((address, _LOOPBACK), address, asked)


def _address_of(interface: str) -> str:
    try:
        return interface_address(interface)
    except OSError as error:
        known = ", ".join(name for _, name in socket.if_nameindex())
        raise ServerError(
            f"this machine has no network interface {interface!r} with an address",
            said=error.strerror,
            mend=f"it has {known}: name one, as in --listen cluster:{interface}",
        ) from error


def _address_of_or_none(interface: str) -> str | None:
    try:
        return interface_address(interface)
    except OSError:
        return None
