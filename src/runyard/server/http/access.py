"""Who asks for what: the caller of a request, and the run, sweep or job that it is about."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from typing import Any, TypeAlias

from starlette.requests import Request

from runyard.server.http.answers import HttpError
from runyard.server.people.permissions import Caller, may_read
from runyard.server.people.sessions import Session
from runyard.server.people.signed_addresses import BadAddress, Kind
from runyard.server.runs import runs
from runyard.server.runs.typed_names import Ambiguous
from runyard.server.store.database import LARGEST_KEY
from runyard.server.store.sql import Row
from runyard.server.sweeps.ledger import sweeps
from runyard.server.tracker import Tracker

ByWords: TypeAlias = Callable[[sqlite3.Connection, str, Any], Row | None]


def tracker_of(request: Request) -> Tracker:
    tracker: Tracker = request.app.state.tracker
    return tracker


def caller_of(request: Request) -> Caller:
    caller: Caller = request.scope["caller"]
    return caller


def session_of(request: Request) -> Session | None:
    """The page's session that a request came by; None where it came with a key."""
    session: Session | None = request.scope.get("session")
    return session


def is_still_in(request: Request) -> bool:
    """Whether a request that takes long would still be let in, and as the same caller.

    Not after a logout, with a revoked key, or when the caller's teams are others.
    """
    tracker, caller, session = tracker_of(request), caller_of(request), session_of(request)
    if session is not None and not tracker.accounts.sessions.is_open(session, time.time()):
        return False
    return tracker.accounts.by_key_id(caller.key_id) == caller


def need_admin(request: Request, what: str) -> None:
    if not caller_of(request).admin:
        raise HttpError(403, f"only the owner of the state folder may {what}")


def signed(request: Request, kind: Kind) -> tuple[Caller, list[Any]]:
    """Who asked for the address of a request without a key, and what for."""
    try:
        caller, claim = tracker_of(request).accounts.signed(kind, request.path_params["token"])
    except BadAddress as error:
        raise HttpError(403, str(error)) from error
    # From here on the request is the caller's, as if it had come with their key.
    request.scope["caller"] = caller
    return caller, claim


def must_write(request: Request, caller: Caller, entity: str) -> None:
    if not tracker_of(request).accounts.may_write(caller, entity):
        raise HttpError(403, f"{entity!r} is not an entity that you may write to")


async def readable_run(request: Request) -> Row:
    """The run of the address, if the caller may see it."""
    return await _readable(request, "run", runs.by_key, request.path_params["key"])


async def readable_sweep(request: Request, key: int | None = None) -> Row:
    """The sweep with this key, by default the one of the address, if the caller may see it."""
    meant = request.path_params["key"] if key is None else key
    return await _readable(request, "sweep", sweeps.by_key, meant)


async def _readable(
    request: Request, what: str, by_key: Callable[[sqlite3.Connection, int], Row | None], key: int
) -> Row:
    row = await tracker_of(request).read(by_key, key) if key <= LARGEST_KEY else None
    if row is None or not may_read(caller_of(request), row["entity"]):
        raise HttpError(404, f"there is no {what} with key {key}")
    return row


async def own_run(request: Request) -> Row:
    """A run that the caller may write to."""
    return _own(request, "runs", await readable_run(request))


async def own_sweep(request: Request, key: int | None = None) -> Row:
    """A sweep that the caller may write to."""
    return _own(request, "sweeps", await readable_sweep(request, key))


def _own(request: Request, what: str, row: Row) -> Row:
    if not tracker_of(request).accounts.may_write(caller_of(request), row["entity"]):
        raise HttpError(403, f"the {what} of {row['entity']!r} are not yours to write to")
    return row


async def meant(request: Request, what: str, by_words: ByWords, seen: Any) -> Row:
    """The run, sweep or job that a person means by the `name` of the question.

    `seen` is what `by_words` takes as the caller's sight.
    """
    words = request.query_params.get("name") or ""
    try:
        row = await tracker_of(request).read(by_words, words, seen)
    except Ambiguous as error:
        names = ", ".join(error.names)
        raise HttpError(404, f"{words!r} is more than one {what}: {names}") from error
    if row is None:
        raise HttpError(404, f"there is no {what} {words!r}")
    return row
