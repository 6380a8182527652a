"""The own API's routes for sessions: which browsers are logged in, and how to end that."""

from __future__ import annotations

import time
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from runyard.server.http.access import caller_of, session_of, tracker_of
from runyard.server.http.answers import HttpError, answer
from runyard.server.http.routes import Access, Endpoints
from runyard.server.people.permissions import may_manage_keys
from runyard.server.people.sessions import Session, ends_at
from runyard.shapes import people

api = Endpoints("people")


@api.get("/api/sessions", answer=list[people.Session])
async def list_sessions(request: Request) -> Response:
    """Browsers that are logged in, the one used last first.

    The admin's list has everybody's.
    """
    current = session_of(request)
    listed: list[dict[str, Any]] = [
        {
            "id": session.id,
            "user": user,
            "key": session.key_id,
            "browser": session.browser,
            "created_at": session.created_at,
            "used_at": session.used_at,
            "used_from": session.used_from,
            "ends_at": ends_at(session),
            "current": session is current,
        }
        for session, user in _manageable(request)
    ]
    return answer(sorted(listed, key=lambda session: -session["used_at"]))


@api.delete("/api/sessions/{session}", access=Access.CONFIRMED, answer={"ended": int})
async def end_session(request: Request) -> Response:
    """End a session."""
    name = request.path_params["session"]
    ended = [session for session, _ in _manageable(request) if session.id == name]
    if not ended:
        raise HttpError(404, f"there is no session {name!r}")
    await tracker_of(request).accounts.end_sessions(ended)
    return answer({"ended": len(ended)})


@api.delete("/api/sessions", access=Access.CONFIRMED, answer={"ended": int})
async def end_others(request: Request) -> Response:
    """End all sessions of the caller but the one that asks."""
    current, name = session_of(request), caller_of(request).name
    ended = [
        session for session, user in _manageable(request) if user == name and session is not current
    ]
    await tracker_of(request).accounts.end_sessions(ended)
    return answer({"ended": len(ended)})


def _manageable(request: Request) -> list[tuple[Session, str]]:
    """Open sessions that the caller may see and end, each with its user."""
    tracker, caller = tracker_of(request), caller_of(request)
    pairs = []
    for session in tracker.accounts.sessions.all(time.time()):
        owner = tracker.accounts.by_key_id(session.key_id)
        if owner is not None and may_manage_keys(caller, owner.name):
            pairs.append((session, owner.name))
    return pairs
