"""Serve one state folder until told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import logging
import logging.handlers
import os
import signal
import socket
import time
from collections.abc import Callable, Coroutine, Sequence

import uvicorn

from runyard.errors import ServerError, StateError
from runyard.home import Discovery, Home, mark_stopped, read_discovery, write_discovery
from runyard.server.app import create_app
from runyard.server.connections import GuardedProtocol, allow_many_connections
from runyard.server.listening import Listening, find_listening
from runyard.server.log_lines import LineFormatter
from runyard.server.tracker import Tracker, new_key
from runyard.version import __version__

log = logging.getLogger("runyard.server")

# Below the range from which kernels take ports for outgoing connections: a port that was ours is
# then likely still free after a crash, and running clients find us where we were.
_FIRST_PORT, _PORTS = 20_000, 12_000
_LOG_BYTES, _LOG_FILES = 5 << 20, 3
# Longer than the 90 s after which Go's clients drop an unused connection: were we the first to
# close it, a request that is just then sent on it would be lost, and be sent again.
_KEEP_ALIVE = 120


def serve(
    home: Home,
    listen: str | None,
    port: int | None,
    ready: Callable[[str | None], None],
    check_owner: Callable[[], None] = lambda: None,
) -> None:
    """Open the folder, listen, tell everybody where, and serve.

    `check_owner` is called before each commit; it does not return if the folder is not ours.
    """
    _start_log(home)
    allow_many_connections()
    before = read_discovery(home)
    listening = find_listening(listen or (before.listen if before else "127.0.0.1"))
    bound = _bind(home, listening, port, before.port if before else None)
    with contextlib.ExitStack() as closing:
        for one in bound:
            closing.enter_context(one)
        port_number = bound[0].getsockname()[1]
        discovery = Discovery(
            url=f"http://{_in_url(listening.name)}:{port_number}",
            key=before.key if before else new_key(),
            pid=os.getpid(),
            hostname=socket.gethostname(),
            listen=listening.asked,
            port=port_number,
            version=__version__,
            started_at=time.time(),
            running=True,
        )
        tracker = Tracker(home, before_commit=check_owner)
        tracker.open(discovery.key, discovery.port)
        note = _moved(before, discovery) if port is None else None
        try:
            _loop(_serve(home, tracker, bound, discovery, lambda: ready(note)))
        finally:
            tracker.close()
            _say_stopped(home)


def _say_stopped(home: Home) -> None:
    try:
        mark_stopped(home)
    except (OSError, StateError) as error:
        # On a full disk, say. Our lock goes with us, which says as much.
        log.error("could not note the end in %s: %s", home.discovery, error)
    log.info("stopped")


async def _serve(
    home: Home,
    tracker: Tracker,
    bound: list[socket.socket],
    discovery: Discovery,
    ready: Callable[[], None],
) -> None:
    def stop() -> None:
        server.should_exit = True

    config = uvicorn.Config(
        create_app(tracker, stop, lambda: server.should_exit),
        loop="none",
        http=GuardedProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=5,
    )
    server = uvicorn.Server(config)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGINT):
        # uvicorn ends on these and then raises them again, which would end us before we close.
        signal.signal(number, lambda *_: stop())
    serving = asyncio.ensure_future(server.serve(sockets=bound))
    while not server.started and not serving.done():
        await asyncio.sleep(0.002)
    if serving.done():
        await serving
        raise ServerError(f"the server of {home.path} did not start", mend=f"look at {home.log}")
    write_discovery(home, discovery)
    log.info("runyard %s serves %s at %s", __version__, home.path, discovery.url)
    ready()
    await serving


def _loop(work: Coroutine[None, None, None]) -> None:
    try:
        import uvloop
    except ImportError:
        asyncio.run(work)
    else:
        uvloop.run(work)


def _bind(
    home: Home, listening: Listening, asked: int | None, last: int | None
) -> list[socket.socket]:
    """Bound sockets: on the port that was asked for, else the last one, else a free one."""
    addresses = listening.addresses
    if asked is not None:
        bound = _try_all(addresses, asked)
        if isinstance(bound, OSError):
            raise ServerError(
                f"cannot listen on {addresses[0]} port {asked}",
                said=bound.strerror,
                mend="give another --port, or none: a free one is then found",
            )
        return bound
    start = int.from_bytes(
        hashlib.sha256(f"{os.getuid()} {home.path}".encode()).digest()[:4], "big"
    )
    failure: OSError | None = None
    for candidate in _candidates(listening.ports, start, last):
        bound = _try_all(addresses, candidate)
        if not isinstance(bound, OSError):
            return bound
        failure = bound
        if bound.errno not in (errno.EADDRINUSE, errno.EACCES):
            break  # The address's fault, and asking a name server fifty times takes long.
    raise ServerError(
        f"cannot listen on {addresses[0]}",
        said=failure.strerror if failure else None,
        mend="`runyard server start --listen ADDRESS` takes an address of this machine",
    )


def _candidates(ports: tuple[int, int] | None, start: int, last: int | None) -> list[int]:
    """Ports to try, in this order: the last one, those that are this folder's, any."""
    low, high = ports or (_FIRST_PORT, _FIRST_PORT + _PORTS - 1)
    many = high - low + 1
    own = [low + (start + step * 127) % many for step in range(min(50, many))]
    if ports is None:
        return [last, *own, 0] if last else [*own, 0]
    return [last, *own] if last and low <= last <= high else own


def _try_all(addresses: Sequence[str], port: int) -> list[socket.socket] | OSError:
    """The same port on every address, or none."""
    bound: list[socket.socket] = []
    for address in addresses:
        one = _try_bind(address, bound[0].getsockname()[1] if bound else port)
        if isinstance(one, OSError):
            for made in bound:
                made.close()
            return one
        bound.append(one)
    return bound


def _try_bind(address: str, port: int) -> socket.socket | OSError:
    if not 0 <= port < 65_536:  # getaddrinfo would quietly take the remainder.
        return OSError(errno.EINVAL, "ports go from 0 to 65535")
    try:
        family, kind, protocol, _, target = socket.getaddrinfo(
            address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
    except OSError as error:
        return error
    except UnicodeError as error:  # An address that no name server could even be asked for.
        return OSError(errno.EINVAL, str(error))
    # So that a restart need not wait until the last server's connections are forgotten.
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(target)
        bound.listen(1024)
    except OSError as error:
        bound.close()
        return error
    return bound


def _in_url(name: str) -> str:
    return f"[{name}]" if ":" in name else name


def _moved(before: Discovery | None, now: Discovery) -> str | None:
    if before is None or before.port == now.port:
        return None
    return (
        f"another program took port {before.port} while the server was down: it is now at "
        f"{now.url}. Programs that were started before keep trying the old address; what they log "
        f"stays in their own wandb folder, and `wandb sync` brings it in"
    )


def _start_log(home: Home) -> None:
    handler = logging.handlers.RotatingFileHandler(
        home.log, maxBytes=_LOG_BYTES, backupCount=_LOG_FILES, encoding="utf-8"
    )
    handler.setFormatter(LineFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    # It is there only if a command started us.
    if home.crash_log.exists() and home.crash_log.stat().st_size > _LOG_BYTES:
        os.truncate(home.crash_log, 0)
