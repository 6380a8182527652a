"""The sockets on which the server listens: at its last port, or at one that nobody can foresee."""

from __future__ import annotations

import errno
import secrets
import socket
from collections.abc import Sequence
from typing import Any

from runyard.errors import ServerError
from runyard.server.http.listening import Listening

# Below the range from which kernels take ports for outgoing connections: a port that was ours is
# then likely still free after a crash, and running clients find us where we were.
_FIRST_PORT, _PORTS = 20_000, 12_000
_MOST_TRIES = 50


def bind(listening: Listening, asked: int | None, last: int | None) -> list[socket.socket]:
    """Bound sockets: on the port that was asked for, else the last one, else a free one."""
    addresses = listening.addresses
    if asked is not None:
        made = _try_all(addresses, asked)
        if isinstance(made, OSError):
            raise ServerError(
                f"cannot listen on {addresses[0]} port {asked}",
                said=made.strerror,
                mend="give another --port, or none: a free one is then found",
            )
        return made
    failure: OSError | None = None
    for candidate in _candidates(listening.ports, last):
        made = _try_all(addresses, candidate)
        if not isinstance(made, OSError):
            return made
        failure = made
        if made.errno not in (errno.EADDRINUSE, errno.EACCES):
            break  # The address's fault, and asking a name server fifty times takes long.
    raise ServerError(
        f"cannot listen on {addresses[0]}",
        said=failure.strerror if failure else None,
        mend="`runyard server start --listen ADDRESS` takes an address of this machine",
    )


def bind_beside(
    listening: Listening, asked: int | None, held: Sequence[socket.socket]
) -> list[socket.socket] | None:
    """The sockets that the port holder kept for us, with new ones at the same port beside them.

    Those that are not wanted are closed; all of them, where it cannot be that port.
    """
    port = held[0].getsockname()[1]
    low, high = listening.ports or (port, port)
    kept = {bound.getsockname()[:2]: bound for bound in held}
    result: list[socket.socket] = []
    for address in listening.addresses if asked in (None, port) and low <= port <= high else ():
        target = _resolve(address, port)
        bound = None if isinstance(target, OSError) else kept.pop(target[3][:2], None)
        made = bound or _try_bind(address, port)
        if isinstance(made, OSError):
            break
        result.append(made)
    is_whole = len(result) == len(listening.addresses)
    for rest in [*kept.values(), *([] if is_whole else result)]:
        rest.close()
    return result if is_whole else None


def _candidates(ports: tuple[int, int] | None, last: int | None) -> list[int]:
    """Ports to try, in this order: the last one, some at random, any.

    At random: nobody is to know beforehand which port a server will have.
    """
    low, high = ports or (_FIRST_PORT, _FIRST_PORT + _PORTS - 1)
    many = min(_MOST_TRIES, high - low + 1)
    some = secrets.SystemRandom().sample(range(low, high + 1), many)
    if ports is None:
        return [last, *some, 0] if last else [*some, 0]
    return [last, *some] if last and low <= last <= high else some


def _try_all(addresses: Sequence[str], port: int) -> list[socket.socket] | OSError:
    """The same port on every address, or none."""
    bound: list[socket.socket] = []
    for address in addresses:
        socket_there = _try_bind(address, bound[0].getsockname()[1] if bound else port)
        if isinstance(socket_there, OSError):
            for made in bound:
                made.close()
            return socket_there
        bound.append(socket_there)
    return bound


def _try_bind(address: str, port: int) -> socket.socket | OSError:
    target = _resolve(address, port)
    if isinstance(target, OSError):
        return target
    family, kind, protocol, place = target
    try:
        bound = socket.socket(family, kind, protocol)
    except OSError as error:
        return error
    # So that a restart need not wait until the last server's connections are forgotten.
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(place)
        bound.listen(1024)
    except OSError as error:
        bound.close()
        return error
    return bound


def _resolve(
    address: str, port: int
) -> tuple[socket.AddressFamily, socket.SocketKind, int, tuple[Any, ...]] | OSError:
    if not 0 <= port < 65_536:  # getaddrinfo would quietly take the remainder.
        return OSError(errno.EINVAL, "ports go from 0 to 65535")
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        return error
    except UnicodeError as error:  # An address that no name server could even be asked for.
        return OSError(errno.EINVAL, str(error))
    return family, kind, protocol, place
