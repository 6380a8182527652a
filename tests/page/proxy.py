"""A proxy as JupyterHub's and Open OnDemand's: a path in front, which the server never sees.

It cuts the beginning off the address, passes no upgrade on, and holds back what streams until it
ends, which for an event stream is never; or it passes streams on and counts them, from some moment
on. Over the standard library, one thread a connection.
"""

from __future__ import annotations

import contextlib
import http.client
import threading
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_DROPPED = {"connection", "upgrade", "transfer-encoding", "keep-alive", "content-length"}


@dataclass
class Streams:
    """The event streams that a proxy passes on."""

    open_now: int = 0
    opened: int = 0
    passes: threading.Event = field(default_factory=threading.Event)
    """Set when streams get through; those of before are held back for ever."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        with self.lock:
            self.open_now += 1
            self.opened += 1
        try:
            yield
        finally:
            with self.lock:
                self.open_now -= 1


@contextlib.contextmanager
def proxy(target: str, prefix: str, streams: Streams | None = None) -> Iterator[str]:
    """The address under which `target` is seen; event streams pass if they are counted."""
    host = urllib.parse.urlsplit(target).netloc

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def _pass_on(self) -> None:
            if not self.path.startswith(prefix):
                self.send_error(404, "outside of the proxied path")
                return
            is_stream = "event-stream" in self.headers.get("Accept", "")
            if is_stream and (streams is None or not streams.passes.is_set()):
                closing.wait()
                return
            upstream = http.client.HTTPConnection(host, timeout=60)
            # A browser that leaves a page does not wait for what it has asked for.
            with contextlib.closing(upstream), contextlib.suppress(ConnectionError):
                if is_stream and streams is not None:
                    with streams.counted():
                        self._answer(upstream, is_stream=True)
                else:
                    self._answer(upstream, is_stream=False)

        def _answer(self, upstream: http.client.HTTPConnection, *, is_stream: bool) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            headers = {
                name: value
                for name, value in self.headers.items()
                if name.lower() not in _DROPPED | {"host"}
            }
            upstream.request(
                self.command,
                self.path.removeprefix(prefix) or "/",
                self.rfile.read(length) if length else None,
                {**headers, "Host": host},
            )
            answer = upstream.getresponse()
            if is_stream and answer.status == http.client.OK:
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.headers["Content-Type"])
                self.send_header("Connection", "close")
                self.end_headers()
                while (piece := answer.read1()) and not closing.is_set():
                    self.wfile.write(piece)
                self.close_connection = True
                return
            body = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in _DROPPED:
                    self.send_header(name, value)
            if answer.status != 304:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = do_HEAD = _pass_on  # noqa: N815

    closing = threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}{prefix}"
    finally:
        closing.set()
        server.shutdown()
        server.server_close()
