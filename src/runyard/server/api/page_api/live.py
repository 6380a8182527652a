"""What changed, told as it happens: one stream a browser, or the same by asking again and again."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import orjson
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from runyard.server.api.page_api.page_answers import project_at
from runyard.server.http import arguments
from runyard.server.http.access import caller_of, is_still_in, tracker_of
from runyard.server.http.answers import HttpError, answer
from runyard.server.http.routes import EVENTS, Endpoints
from runyard.server.jobs import jobs
from runyard.server.people.permissions import Caller, may_read, readable
from runyard.server.runs import projects, runs
from runyard.server.store.changes import Change, Changes, Kind
from runyard.server.store.database import LARGEST_KEY
from runyard.server.sweeps.ledger import sweeps
from runyard.server.tracker import Tracker
from runyard.shapes.projects import News

api = Endpoints("live")

# News are put together for this long: a run may log a hundred times a second.
_EVERY = 1.0
# Proxies close what is silent for long.
_SIGN_OF_LIFE = 15.0
# Nobody looks at more windows.
_MOST = 100

_EVERYWHERE = (Kind.PROJECT, Kind.RUN, Kind.DELETED, Kind.SWEEP)
_ALL = tuple(Kind)
_LISTS = ("runs", "history", "console", "files", "deleted", "sweeps")
_FLAGS = ("agents", "jobs", "projects", "reports")


@dataclass(frozen=True)
class Scope:
    """What a page shows, and wants to hear of."""

    projects: frozenset[int]
    runs: frozenset[int]
    sweeps: frozenset[int]
    jobs: bool
    overview: bool


async def news(
    tracker: Tracker, caller: Caller, scope: Scope, since: int | None
) -> dict[str, Any] | None:
    """What changed in a scope after `since`; None for nothing. `whole`: ask for everything."""
    changes = tracker.changes
    revision = changes.revision
    pending = None if since is None else changes.since(since, _ALL)
    if pending is None:
        return nothing(revision) | {"whole": True}
    if since == revision:
        return None
    keys: dict[str, set[int]] = {name: set() for name in _LISTS}
    flags = dict.fromkeys(_FLAGS, False)
    entities = readable(caller)
    if (scope.jobs or scope.overview) and entities is not None:
        # These tell of everything there is, so of what is not the caller's too.
        pending = await tracker.read(_seen, pending, jobs.Sight(caller.key, entities))
    for change in pending:
        _sort_in(keys, flags, scope, change.kind, change.key, change.project, change.detail)
    if not any(keys.values()) and not any(flags.values()):
        return None
    names = {name: sorted(changed) for name, changed in keys.items()}
    return {"revision": revision, "whole": False, **names, **flags}


def _seen(
    connection: sqlite3.Connection, pending: Sequence[Change], sight: jobs.Sight
) -> list[Change]:
    """Those changes that are of projects and jobs in sight."""
    in_sight = projects.keys_of_entities(connection, sight.entities)
    return [
        change
        for change in pending
        if change.project in in_sight
        or (change.kind is Kind.JOB and jobs.by_key(connection, change.key, sight) is not None)
    ]


def nothing(revision: int) -> dict[str, Any]:
    """No news: as of that revision, everything is as it was."""
    lists: dict[str, Any] = {name: [] for name in _LISTS}
    return {"revision": revision, "whole": False, **lists, **dict.fromkeys(_FLAGS, False)}


def _sort_in(
    keys: dict[str, set[int]],
    flags: dict[str, bool],
    scope: Scope,
    kind: Kind,
    key: int,
    project: int,
    detail: int,
) -> None:
    is_shown = project in scope.projects
    by_run = {
        Kind.RUN: "runs",
        Kind.HISTORY: "history",
        Kind.DELETED: "deleted",
        Kind.MOVED: "deleted",
        Kind.FILES: "files",
    }
    if kind in by_run and (is_shown or key in scope.runs):
        keys[by_run[kind]].add(key)
    elif kind is Kind.CONSOLE and key in scope.runs:
        keys["console"].add(key)
    elif kind in (Kind.SWEEP, Kind.TRIAL) and (is_shown or key in scope.sweeps):
        keys["sweeps"].add(key)
    elif kind is Kind.AGENT and (scope.jobs or detail in scope.sweeps):
        flags["agents"] = True
    elif kind is Kind.REPORT and is_shown:
        flags["reports"] = True
    if kind is Kind.JOB and scope.jobs:
        flags["jobs"] = True
    if kind in _EVERYWHERE and scope.overview:
        flags["projects"] = True
    if kind in (Kind.TRIAL, Kind.USAGE) and scope.jobs:
        flags["agents"] = True


@api.get(
    "/api/live",
    query={
        "project": list[str],
        "run": list[int],
        "sweep": list[int],
        "jobs": int,
        "projects": int,
        "since": int,
        "wait": float,
        "watch": list[str],
    },
    answer=News,
    media=EVENTS,
)
async def live(request: Request) -> Response:
    """What changed after `since` in what is named; as server-sent events to who accepts them, at
    most one a second; else once, after up to `wait` seconds. A `watch` is such a query of its own
    with an `id`: several windows share a stream, and each event names its `watch`.
    """
    query = request.query_params
    is_stream = "text/event-stream" in request.headers.get("accept", "")
    if is_stream and (texts := query.getlist("watch")):
        return _stream(request, [await _read_watch(request, text) for text in texts[:_MOST]])
    scope = await _scope(request, query)
    # A browser that comes back says what it heard last.
    last = request.headers.get("last-event-id") or query.get("since")
    since = arguments.whole_number(last, "since")
    if is_stream:
        return _stream(request, [_Watch(None, scope, since)])
    wait = arguments.wait_seconds(query.get("wait"))
    tracker, caller = tracker_of(request), caller_of(request)
    changes = tracker.changes
    end = time.monotonic() + wait
    with _Bell(changes) as bell:
        while True:
            latest = await news(tracker, caller, scope, since)
            left = end - time.monotonic()
            if latest is not None or left <= 0 or request.app.state.is_stopping():
                break
            await bell.rung(min(left, _EVERY))
    return answer(latest or nothing(changes.revision))


@dataclass
class _Watch:
    """What one window shows, and the revision up to which it has been told.

    No `scope`: what it named is not there any more. It asks for everything, and finds out.
    """

    id: str | None
    scope: Scope | None
    known: int | None

    async def news(self, tracker: Tracker, caller: Caller) -> dict[str, Any] | None:
        # What is not for this window need not be looked at again.
        newest = tracker.changes.revision
        changes = (
            None if self.scope is None else await news(tracker, caller, self.scope, self.known)
        )
        self.known = newest if changes is None else changes["revision"]
        return changes


async def _read_watch(request: Request, text: str) -> _Watch:
    query = QueryParams(text)
    since = arguments.whole_number(query.get("since"), "since")
    try:
        return _Watch(query.get("id", ""), await _scope(request, query), since)
    except HttpError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        return _Watch(query.get("id", ""), None, since)


def _stream(request: Request, watches: Sequence[_Watch]) -> Response:
    return StreamingResponse(
        _events(request, watches),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"},
    )


async def _events(request: Request, watches: Sequence[_Watch]) -> AsyncIterator[bytes]:
    tracker, caller = tracker_of(request), caller_of(request)
    changes = tracker.changes
    for watch in watches:
        # Who knows nothing yet has just been told everything, by the answers it will ask for.
        known = changes.revision if watch.known is None else watch.known
        watch.known = known
        first = nothing(known) | {"whole": watch.scope is None}
        # The first word comes at once: by its silence the page knows a proxy that holds streams
        # back.
        yield _event(watch, await watch.news(tracker, caller) or first)
    quiet_since = time.monotonic()
    with _Bell(changes) as bell:
        # Else the page asks anew, and is answered as who it is by then.
        while is_still_in(request) and not request.app.state.is_stopping():
            is_quiet = True
            for watch in watches:
                fresh = await watch.news(tracker, caller)
                if fresh is not None:
                    is_quiet = False
                    yield _event(watch, fresh)
            now = time.monotonic()
            if not is_quiet:
                quiet_since = now
                await asyncio.sleep(_EVERY)
                continue
            if now - quiet_since >= _SIGN_OF_LIFE:
                quiet_since = now
                yield b": here\n\n"
            await bell.rung(_EVERY)
            await asyncio.sleep(0.05)  # What comes together is told together.


def _event(watch: _Watch, change: dict[str, Any]) -> bytes:
    content = change if watch.id is None else change | {"watch": watch.id}
    return b"id: %d\ndata: %s\n\n" % (change["revision"], orjson.dumps(content))


class _Bell:
    """Rings in the event loop when something was committed."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()
        self._is_pending = False

    def __enter__(self) -> _Bell:
        self._silence = self._changes.listen(self._ring)
        return self

    def __exit__(self, *_: object) -> None:
        self._silence()

    async def rung(self, longest: float) -> None:
        """Wait for the next commit, or that long."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._event.wait(), longest)
        self._event.clear()
        self._is_pending = False

    def _ring(self) -> None:
        # Once until it is heard: a thousand commits a second are not a thousand calls.
        if not self._is_pending:
            self._is_pending = True
            with contextlib.suppress(RuntimeError):  # The loop has ended.
                self._loop.call_soon_threadsafe(self._event.set)


async def _scope(request: Request, query: QueryParams) -> Scope:
    tracker, caller = tracker_of(request), caller_of(request)
    shown = [(await project_at(request, place))["key"] for place in query.getlist("project")]
    keys: dict[str, list[int]] = {"run": [], "sweep": []}
    for name, by_key in (("run", runs.by_key), ("sweep", sweeps.by_key)):
        for text in query.getlist(name):
            key = arguments.whole_number(text, name) or 0
            row = await tracker.read(by_key, min(key, LARGEST_KEY))
            if row is None or not may_read(caller, row["entity"]):
                raise HttpError(404, f"there is no {name} with key {key}")
            keys[name].append(key)
    return Scope(
        frozenset(shown),
        frozenset(keys["run"]),
        frozenset(keys["sweep"]),
        jobs=query.get("jobs") == "1",
        overview=query.get("projects") == "1",
    )
