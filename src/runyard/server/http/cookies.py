"""What a browser sends of a session: its cookie, and the header or the ticket beside it.

Every program on a shared machine can serve a page from another port of the same host, and to a
browser that is the same *site*: SameSite does not keep it out, and the cookie goes there too.
"""

from __future__ import annotations

import urllib.parse
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import QueryParams
from starlette.types import Scope

# Sent by the page with everything that it fetches: its session's proof, or any word without one.
HEADER = b"x-runyard"
TICKET = "ticket"


def cookie_of(scope: Scope, name: str) -> str | None:
    for header, value in scope["headers"]:
        if header == b"cookie":
            try:
                morsel = SimpleCookie(value.decode("latin-1")).get(name)
            except CookieError:
                continue
            if morsel is not None:
                return morsel.value
    return None


def is_from_browser(scope: Scope) -> bool:
    """Whether the page asks, or a browser for an image on it."""
    return any(name in (HEADER, b"sec-fetch-site") for name, _ in scope["headers"])


def proof_of(scope: Scope) -> str:
    return next((value.decode("latin-1") for name, value in scope["headers"] if name == HEADER), "")


def ticket_of(scope: Scope) -> str:
    return QueryParams(scope["query_string"]).get(TICKET, "")


def is_own_login(scope: Scope) -> bool:
    """Whether our own page asks to log in: another one could log its visitors in as somebody.

    No form and no foreign script can send the header without being asked.
    """
    headers: dict[bytes, str] = {name: value.decode("latin-1") for name, value in scope["headers"]}
    if HEADER not in headers:
        return False
    site = headers.get(b"sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = headers.get(b"origin")
    if origin is None:
        return True
    # Proxies in front of us name the host that the browser saw.
    hosts = {headers.get(b"host"), headers.get(b"x-forwarded-host")}
    return urllib.parse.urlsplit(origin).netloc in hosts


def set_cookie(name: str, token: str, path: str, seconds: int, *, secure: bool) -> str:
    words = [f"{name}={token}", f"Path={path}", f"Max-Age={seconds}", "HttpOnly", "SameSite=Strict"]
    return "; ".join([*words, "Secure"] if secure else words)


def cookie_path(path: object) -> str:
    """The path below which the page lives, as its browser sees it; `/` for anything odd."""
    if not isinstance(path, str) or len(path) > 1_000:
        return "/"
    quoted = urllib.parse.quote(path, safe="/%~@:!$&'()*+,=")
    return quoted if quoted.startswith("/") else "/"
