"""Who asks for what: the caller of a request, and the run in its address if they may have it."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from runyard.server.addresses import BadAddress, Kind
from runyard.server.answers import Unacceptable
from runyard.server.permissions import Caller, may_read
from runyard.server.store import runs
from runyard.server.store.runs import Row
from runyard.server.tracker import Tracker

# SQLite's integers end here.
LARGEST_KEY = 2**63 - 1


def tracker_of(request: Request) -> Tracker:
    tracker: Tracker = request.app.state.tracker
    return tracker


def caller_of(request: Request) -> Caller:
    caller: Caller = request.scope["caller"]
    return caller


def need_admin(request: Request, what: str) -> None:
    if not caller_of(request).admin:
        raise Unacceptable(403, f"only the owner of the state folder may {what}")


def signed(request: Request, kind: Kind) -> tuple[Caller, list[Any]]:
    """Who asked for the address of a request without a key, and what for."""
    try:
        return tracker_of(request).signed(kind, request.path_params["token"])
    except BadAddress as error:
        raise Unacceptable(403, str(error)) from error


def must_write(request: Request, caller: Caller, entity: str) -> None:
    if not tracker_of(request).may_write(caller, entity):
        raise Unacceptable(403, f"{entity!r} is not an entity that you may write to")


async def readable_run(request: Request) -> Row:
    """The run of the address, if the caller may see it."""
    key: int = request.path_params["key"]
    row = await tracker_of(request).read(runs.by_key, key) if key <= LARGEST_KEY else None
    if row is None or not may_read(caller_of(request), row["entity"]):
        raise Unacceptable(404, f"there is no run with key {key}")
    return row


async def own_run(request: Request) -> Row:
    """A run that the caller may write to."""
    row = await readable_run(request)
    if not tracker_of(request).may_write(caller_of(request), row["entity"]):
        raise Unacceptable(403, f"the runs of {row['entity']!r} are not yours to write to")
    return row
