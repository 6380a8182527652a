"""Serve one state folder until told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import logging.handlers
import os
import signal
import socket
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import uvicorn

from runyard.errors import ServerError, StateError
from runyard.home import Discovery, Home, mark_stopped, read_discovery, write_discovery
from runyard.port_holder import Holder, find_holder, start_holder
from runyard.printable import printable
from runyard.server.app import create_app, direct_routes
from runyard.server.http.binding import bind, bind_beside
from runyard.server.http.connections import GuardedProtocol, allow_many_connections
from runyard.server.http.listening import find_listening
from runyard.server.http.proxies import ProxyMiddleware, ProxyOptions, read_addresses
from runyard.server.http.tls import Tls, TlsOptions
from runyard.server.people.accounts import new_key
from runyard.server.tracker import Tracker
from runyard.version import __version__

log = logging.getLogger("runyard.server")

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
    tls_wish: TlsOptions | None = None,
    proxy_wish: ProxyOptions | None = None,
) -> None:
    """Open the folder, listen, tell everybody where, and serve.

    `check_owner` is called before each commit; it does not return if the folder is not ours.
    """
    _start_log(home)
    allow_many_connections()
    before = read_discovery(home)
    listening = find_listening(listen or (before.listen if before else "127.0.0.1"))
    holder = find_holder(home, before.key, log.warning) if before else None
    bound = bind_beside(listening, port, holder.sockets) if holder else None
    if holder is not None and bound != holder.sockets:
        holder.end()  # It holds another address. The next one is started when we serve.
        holder = None
    if bound is None:
        bound = bind(listening, port, before.port if before else None)
    with contextlib.ExitStack() as closing:
        for address in bound:
            closing.enter_context(address)
        port_number = bound[0].getsockname()[1]
        wish = (tls_wish or TlsOptions()).over(before)
        tls = Tls(home, wish, listening) if wish.on else None
        scheme = "https" if tls else "http"
        proxy = (proxy_wish or ProxyOptions()).over(before)
        discovery = Discovery(
            url=f"{scheme}://{_in_url(listening.name)}:{port_number}",
            key=before.key if before else new_key(),
            pid=os.getpid(),
            hostname=socket.gethostname(),
            listen=listening.asked,
            port=port_number,
            version=__version__,
            started_at=time.time(),
            running=True,
            authority=tls.authority.certificate if tls else "",
            tls_cert=wish.cert,
            tls_key=wish.key,
            tls_ca=wish.ca,
            public_url=proxy.url or "",
            proxies=proxy.proxies or "",
        )
        tracker = Tracker(home, before_commit=check_owner)
        tracker.open(discovery.key, discovery.port)
        discovery = replace(
            discovery, node_key=tracker.accounts.node_key(before.node_key if before else "")
        )
        tracker.url = discovery.url
        notes = [
            _moved(tracker, before, discovery, is_wanted=port is not None),
            _switched(before, discovery),
            tls.note if tls else None,
        ]
        tracker.note = "; ".join(filter(None, notes)) or None
        try:
            _loop(_serve(home, tracker, bound, discovery, tls, holder, lambda: ready(tracker.note)))
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
    tls: Tls | None,
    holder: Holder | None,
    ready: Callable[[], None],
) -> None:
    def stop() -> None:
        server.should_exit = True

    app = create_app(tracker, stop, lambda: server.should_exit)
    behind = ProxyMiddleware(app, read_addresses(discovery.proxies), discovery.public_url)
    GuardedProtocol.routes = direct_routes(tracker, behind.seen)
    config = uvicorn.Config(
        behind,
        # uvicorn's own would believe every user of this machine.
        proxy_headers=False,
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
    GuardedProtocol.tls = tls.context if tls else None
    renewal = asyncio.ensure_future(tls.keep()) if tls else None
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
    try:
        holder = holder or start_holder(home, discovery.key, bound)
    except OSError as error:
        what = "no process keeps port %d if this server is killed: %s; others can then take it"
        log.warning(what, discovery.port, error)
    await serving
    if renewal is not None:
        renewal.cancel()
    if holder is not None and not app.state.keeps_port:
        holder.end()


def _loop(work: Coroutine[None, None, None]) -> None:
    try:
        import uvloop
    except ImportError:
        asyncio.run(work)
    else:
        uvloop.run(work)


def _in_url(name: str) -> str:
    return f"[{name}]" if ":" in name else name


def _moved(
    tracker: Tracker, before: Discovery | None, now: Discovery, *, is_wanted: bool
) -> str | None:
    """Retire what clients may send to whoever has our last port; what is to be told of it."""
    if before is None or (before.hostname, before.port) == (now.hostname, now.port):
        return None
    count = tracker.accounts.retire_keys(
        f"was retired: the server left port {before.port} of {before.hostname}, which anybody can "
        "have now",
        before.port,
    )
    why = (
        f"the server moved from port {before.port}"
        if is_wanted or before.hostname != now.hostname
        else f"another program took port {before.port} while the server was down"
    )
    note = (
        f"{why}: it is now at {now.url}. Keys that may have been sent to the old port are retired "
        f'({count}): `eval "$(runyard env)"` gives a shell a new one. Programs of agents and of '
        "`runyard run` go on by themselves; what others log stays in their own wandb folder, and "
        "`runyard sync FOLDER` brings it in"
    )
    log.warning("%s", note)
    return note


def _switched(before: Discovery | None, now: Discovery) -> str | None:
    if before is None or bool(before.authority) == bool(now.authority):
        return None
    return (
        f"the address is {now.url} now: programs that were started before keep trying the old one; "
        "what they log stays in their own wandb folder, and `wandb sync` brings it in"
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


class LineFormatter(logging.Formatter):
    """One record is one line, whatever a client sent.

    Control characters of a message are shown, its line breaks too: nobody forges a line.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's own name
        return printable(super().formatMessage(record)).replace("\n", "\\n")

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's own name
        return printable(super().formatException(ei))
