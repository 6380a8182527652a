"""Who may come in: nobody without the key or a session of the page, except by an open route."""

from __future__ import annotations

import base64
import binascii
import contextlib
import time
from collections.abc import Sequence

from starlette.responses import Response
from starlette.routing import Match
from starlette.types import ASGIApp, Receive, Scope, Send

from runyard.server.http.answers import answer
from runyard.server.http.cookies import cookie_of, is_from_browser, proof_of, ticket_of
from runyard.server.http.routes import Access, Endpoint
from runyard.server.people.accounts import Accounts
from runyard.server.people.permissions import Caller
from runyard.server.people.sessions import is_confirmed
from runyard.server.tracker import Tracker

# Where the stock client comes, which asks for no proof.
_STOCK = ("/graphql", "/files/")
_CONFIRM = "runyard ui --code"


class AuthMiddleware:
    """Lets a request in with the key, with a session of the page, or by an open route."""

    def __init__(self, app: ASGIApp, tracker: Tracker, endpoints: Sequence[Endpoint]) -> None:
        self._app = app
        self._tracker = tracker
        self._endpoints = endpoints
        self._by_access: dict[Access, list[Endpoint]] = {access: [] for access in Access}
        for endpoint in endpoints:
            self._by_access[endpoint.access].append(endpoint)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            caller = caller_by_key(self._tracker.accounts, scope)
            if caller is None:
                caller = self._visitor(scope)
                refusal = None if caller is None else self._page_refusal(scope)
                if refusal is not None:
                    await refusal(scope, receive, send)
                    return
            if caller is not None:
                scope["caller"] = caller
            elif not self._is_open(scope):
                await _refusal(scope, self._tracker.accounts.why_refused(key_of(scope)))(
                    scope, receive, send
                )
                return
        await self._app(scope, receive, send)

    def _visitor(self, scope: Scope) -> Caller | None:
        """Who is logged in on the page that asks; the cookie alone lets nobody in."""
        sessions, now = self._tracker.accounts.sessions, time.time()
        cookie = cookie_of(scope, sessions.cookie)
        session = sessions.by_cookie(cookie, now) if cookie else None
        if session is None:
            return None
        if not sessions.proves(session, proof_of(scope)) and not (
            self._needs(scope, Access.FILE) and sessions.admits(session, ticket_of(scope))
        ):
            return None
        caller = self._tracker.accounts.by_key_id(session.key_id)
        if caller is not None:
            sessions.use(session, address_of(scope), now)
            scope["session"] = session
        return caller

    def _page_refusal(self, scope: Scope) -> Response | None:
        """Why a page that is logged in may not do this, if so."""
        if self._needs(scope, Access.KEY):
            return answer({"error": "this takes the key, not a session of the page"}, 403)
        if self._needs(scope, Access.CONFIRMED) and not is_confirmed(scope["session"], time.time()):
            message = f"confirm that it is you: `{_CONFIRM}` prints a code"
            return answer({"error": message, "confirm": _CONFIRM}, 403)
        return None

    def _needs(self, scope: Scope, access: Access) -> bool:
        candidates = self._by_access[access]
        return any(endpoint.matches(scope)[0] == Match.FULL for endpoint in candidates)

    def _is_open(self, scope: Scope) -> bool:
        """By the request's path, whatever its method."""
        for endpoint in self._endpoints:
            if endpoint.matches(scope)[0] != Match.NONE:
                return endpoint.access is Access.EVERYBODY
        return False


def _refusal(scope: Scope, why: str | None) -> Response:
    if is_from_browser(scope):
        # Without the header by which a browser would ask for a name and a password.
        return answer({"error": "you are not logged in: `runyard ui` prints a link"}, 401)
    refusal = answer({"error": why or "this needs the key: see `runyard env`"}, 401)
    refusal.headers["WWW-Authenticate"] = 'Basic realm="runyard"'
    return refusal


def caller_by_key(accounts: Accounts, scope: Scope) -> Caller | None:
    """Whose key a request shows, if it is good."""
    is_stock = scope["path"].startswith(_STOCK)
    return accounts.caller(key_of(scope), address_of(scope), is_stock=is_stock)


def address_of(scope: Scope) -> str:
    return str(scope["client"][0]) if scope.get("client") else ""


def key_of(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"authorization" and value[:6].lower() == b"basic ":
            with contextlib.suppress(binascii.Error, UnicodeDecodeError):
                return base64.b64decode(value[6:]).decode().partition(":")[2]
    return ""
