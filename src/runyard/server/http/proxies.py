"""A reverse proxy in front of the server: whose word on the client and the address is believed.

Without `--proxy` nobody's: on a login node every user comes from 127.0.0.1, and could say that it
was somebody else.
"""

from __future__ import annotations

import ipaddress
import urllib.parse
from dataclasses import dataclass

from starlette.types import ASGIApp, Receive, Scope, Send

from runyard.errors import ServerError
from runyard.home import Discovery

# Where the middleware leaves the address by which the client came, for what is handed out to it.
CAME_BY = "runyard.came_by"


@dataclass(frozen=True)
class ProxyOptions:
    """What the command line asks for; None where all stays as it was, empty to end it."""

    url: str | None = None
    proxies: str | None = None

    def over(self, before: Discovery | None) -> ProxyOptions:
        """Together with what the server did last time, checked."""
        url = self.url if self.url is not None else before.public_url if before else ""
        proxies = self.proxies if self.proxies is not None else before.proxies if before else ""
        parts = urllib.parse.urlsplit(url)
        if url and (parts.scheme not in ("http", "https") or not parts.netloc or parts.query):
            raise ServerError(f"{url!r} is no address of a server", mend="--url https://HOST/PATH")
        read_addresses(proxies)
        return ProxyOptions(url.rstrip("/"), proxies)


def read_addresses(text: str) -> frozenset[str]:
    """Addresses, with commas between them, as the operating system would name them."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    try:
        return frozenset(str(ipaddress.ip_address(word)) for word in words)
    except ValueError as error:
        raise ServerError(
            "--proxy takes the addresses that proxies come from",
            said=error,
            mend="--proxy 10.1.0.5, as the server sees it; several with commas between them",
        ) from error


class ProxyMiddleware:
    """Puts the client and the address that a trusted proxy names in place of the proxy's own."""

    def __init__(self, app: ASGIApp, proxies: frozenset[str], public_url: str) -> None:
        self._app = app
        self._proxies = proxies
        self._public_url = public_url

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(self.seen(scope) if scope["type"] == "http" else scope, receive, send)

    def seen(self, scope: Scope) -> Scope:
        """A request as the application sees it.

        In the same scope: the connection looks there for a caller whose key was good.
        """
        peer = scope.get("client")
        if peer and peer[0] in self._proxies and CAME_BY not in scope:
            scope.update(self._told(scope))
        return scope

    def _told(self, scope: Scope) -> Scope:
        headers: dict[bytes, str] = {}
        for name, value in scope["headers"]:  # The same header twice is one list.
            text = value.decode("latin-1")
            headers[name] = f"{headers[name]},{text}" if name in headers else text
        scheme = _last(headers.get(b"x-forwarded-proto", "")).lower()
        scheme = scheme if scheme in ("http", "https") else scope["scheme"]
        host = _last(headers.get(b"x-forwarded-host", "")) or headers.get(b"host", "")
        return {
            "scheme": scheme,
            "client": (self._client(headers.get(b"x-forwarded-for", ""), scope["client"][0]), 0),
            CAME_BY: self._public_url or f"{scheme}://{host}",
        }

    def _client(self, chain: str, peer: str) -> str:
        """The nearest address that is no proxy of ours: what stands before it may be invented."""
        client = peer
        for word in reversed(chain.split(",")):
            try:
                client = str(ipaddress.ip_address(word.strip()))
            except ValueError:
                break
            if client not in self._proxies:
                break
        return client


def _last(values: str) -> str:
    """What the nearest proxy said."""
    return values.rpartition(",")[2].strip()
