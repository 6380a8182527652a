"""Headers that keep what programs brought from running as if it were our page."""

from __future__ import annotations

import mimetypes
from collections.abc import Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

# For everything but the page's own documents: whatever it holds, a browser that shows it lets
# nothing in it run, load or send, and gives it no part in our origin.
CLOSED = (
    (b"content-security-policy", b"sandbox; default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"same-origin"),
)
# What the page shows as it is. Everything else is bytes: above all no script and no style, which
# a page of our origin could load.
_SHOWN = ("image/", "audio/", "video/", "application/json", "text/plain", "text/csv")


def closed(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """An answer's headers, with those above that it does not bring itself."""
    own = list(headers)
    present = {name for name, _ in own}
    return own + [header for header in CLOSED if header[0] not in present]


class SecurityHeadersMiddleware:
    """Gives each answer the headers above, unless it brings its own."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def close(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = closed(message["headers"])
            await send(message)

        await self._app(scope, receive, close)


def kind_of_file(name: str) -> str:
    """The media type under which a file of a run goes out."""
    kind = mimetypes.guess_type(name)[0] or ""
    return kind if kind.startswith(_SHOWN) else "application/octet-stream"
