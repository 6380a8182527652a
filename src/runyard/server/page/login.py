"""Logging a browser in: a command asks for a code, the page exchanges it for a session."""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from runyard.server.http.access import caller_of, session_of, tracker_of
from runyard.server.http.answers import HttpError, answer, read_texts
from runyard.server.http.cookies import cookie_path, is_own_login, set_cookie
from runyard.server.http.routes import Access, Endpoints
from runyard.server.http.scopes import REFUSAL
from runyard.server.people import sessions as stored
from runyard.server.people.permissions import RUNS, Caller
from runyard.server.people.sessions import CODE_SECONDS, LONGEST_SECONDS
from runyard.shapes.people import Login, LoginCode

api = Endpoints("people")

# A wrong code or key is answered late. There is no limit by address: on a login node a stranger
# has the address of the owner, who would be the one that it keeps out.
REFUSAL_SECONDS = 1.0
# Ours are 40 hexadecimal digits (`accounts.new_key`); the codes of links have other letters too.
_KEY = re.compile(r"[0-9a-f]{30,}")


@dataclass
class LoginQuestion:
    """`path` and `secure` are how the browser sees the page: a proxy may stand in between.
    `replace`: the session of another user, if the browser has one, ends (else: 409)."""

    code: str
    path: str | None = None
    secure: bool = False
    replace: bool = False


# A session that could make codes would confirm itself.
@api.post("/api/login/codes", access=Access.KEY, answer=LoginCode)
async def make_code(request: Request) -> Response:
    """Make a code that logs one browser in, once and soon."""
    code = tracker_of(request).accounts.codes.make(caller_of(request).key_id, time.time())
    return answer({"code": code, "seconds": int(CODE_SECONDS)})


@api.post("/api/login", access=Access.EVERYBODY, body=LoginQuestion, answer=Login)
async def log_in(request: Request) -> Response:
    """Exchange a code or a key for a session: its cookie, and the `proof` that goes into the
    header `X-Runyard`; `ticket` replaces that in the address of a file. `path` and `secure` are
    how the browser sees the page (open: no key). If the browser is logged in as another user, the
    answer is 409 and the code stays good, unless `replace` is true.
    """
    if not is_own_login(request.scope):
        raise HttpError(403, "log in on runyard's own page")
    body = await read_texts(request)
    accounts, now = tracker_of(request).accounts, time.time()
    before = session_of(request)
    is_agreed = before is None or body.get("replace") is True
    caller = await _shown(request, body.get("code"), instead_of_others=is_agreed)
    session, cookie, proof = accounts.sessions.make(
        caller.key_id, request.headers.get("user-agent", ""), _address(request), now
    )
    if not await accounts.open_session(session):
        raise _refused(body.get("code"))
    if before is not None:  # The browser forgets its cookie for the new one.
        await accounts.end_sessions([before])
    ticket = accounts.sessions.ticket(session)
    response = answer({"name": caller.name, "proof": proof, "ticket": ticket})
    response.headers["Set-Cookie"] = set_cookie(
        accounts.sessions.cookie,
        cookie,
        cookie_path(body.get("path")),
        LONGEST_SECONDS,
        secure=body.get("secure") is True,
    )
    return response


@api.post("/api/login/confirm", body=LoginQuestion)
async def confirm(request: Request) -> Response:
    """Show a code or a key again: for ten minutes the session may administer."""
    session = session_of(request)
    if session is None:  # Who comes with a key has shown it just now.
        return answer({})
    body = await read_texts(request)
    if (await _shown(request, body.get("code"))).key != caller_of(request).key:
        raise HttpError(403, "this code is another user's")
    now = time.time()
    await tracker_of(request).write(stored.confirm, session.hash, now)
    session.confirmed_at = now
    return answer({})


@api.post("/api/logout", body={"path": str})
async def log_out(request: Request) -> Response:
    """End the session, and forget its cookie."""
    body = await read_texts(request)
    accounts, session = tracker_of(request).accounts, session_of(request)
    if session is not None:
        await accounts.end_sessions([session])
    response = answer({})
    response.headers["Set-Cookie"] = set_cookie(
        accounts.sessions.cookie, "", cookie_path(body.get("path")), 0, secure=False
    )
    return response


async def _shown(request: Request, secret: object, *, instead_of_others: bool = True) -> Caller:
    """Whose code or key this is. A code is worth nothing afterwards.

    Otherwise it is refused if it is another user's than the session: anybody can send a link.
    """
    accounts, now = tracker_of(request).accounts, time.time()
    if isinstance(secret, str) and secret:
        key_id = accounts.codes.find(secret, now)
        caller = (
            accounts.by_key_id(key_id) if key_id else accounts.caller(secret, _address(request))
        )
        if caller is not None:
            if caller.scope == RUNS:
                raise HttpError(403, f"{REFUSAL}; `runyard ui` prints a link")
            if not instead_of_others and caller.key != caller_of(request).key:
                who = f"You are logged in as {caller_of(request).name}"
                raise HttpError(409, f"{who}. This link logs you in as {caller.name}.")
            accounts.codes.take(secret, now)
            return caller
    await asyncio.sleep(REFUSAL_SECONDS)
    why = accounts.why_refused(secret) if isinstance(secret, str) else None
    if why is not None:
        raise HttpError(403, why)
    raise _refused(secret)


def _refused(secret: object) -> HttpError:
    """A key and the code of a link are told apart: each has another mend."""
    if isinstance(secret, str) and _KEY.fullmatch(secret):
        return HttpError(
            403,
            "this server does not know the key: copy all of it, or ask the server's owner for "
            "another one (`runyard users keys add --user YOU`)",
        )
    return HttpError(
        403, "this link or code was used before or is too old: `runyard ui` prints a fresh link"
    )


def _address(request: Request) -> str:
    return request.client.host if request.client else ""
