"""The own API's routes for users, keys and teams."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Concatenate, ParamSpec, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from runyard.server.http import arguments
from runyard.server.http.access import caller_of, need_admin, tracker_of
from runyard.server.http.answers import HttpError, answer, read_texts
from runyard.server.http.routes import Access, Endpoint
from runyard.server.people import api_keys, invitations, people, permissions
from runyard.server.people.accounts import new_key
from runyard.server.people.api_keys import Wanted
from runyard.server.people.permissions import RUNS
from runyard.server.store.names import BadName
from runyard.server.tracker import Tracker

Given = ParamSpec("Given")
Result = TypeVar("Result")

log = logging.getLogger(__name__)

_LONGEST_LABEL = 200
_MOST_DAYS = 366
_NOTE_EVERY = 60.0


async def note_uses(tracker: Tracker) -> None:
    """Write down, now and then, when keys were last used, and let go of those that ended."""
    while True:
        await asyncio.sleep(_NOTE_EVERY)
        try:
            await tracker.accounts.keep_up_keys()
        except Exception as error:  # A full disk, say. The next time may be better.
            log.warning("could not note when keys were used: %s", error)


async def who_am_i(request: Request) -> Response:
    caller = caller_of(request)
    return answer(
        {
            "name": caller.name,
            "admin": caller.admin,
            "teams": sorted(caller.teams),
            "invitations": await tracker_of(request).read(invitations.of_user, caller.name),
        }
    )


async def list_users(request: Request) -> Response:
    caller = caller_of(request)
    users = await tracker_of(request).read(people.list_users)
    return answer(
        [
            {**user, "teams": permissions.known_teams(caller, user["name"], user["teams"])}
            for user in users
            if permissions.may_see(caller, user["name"], user["teams"])
        ]
    )


async def add_user(request: Request) -> Response:
    need_admin(request, "add users")
    given = await read_texts(request)
    name, key = arguments.field(given, "name", str), new_key()

    def change(connection: sqlite3.Connection) -> dict[str, Any]:
        people.add_user(connection, name, time.time())
        return people.add_key(connection, name, key, Wanted("first"), time.time())

    # The one time that the key is told.
    return answer({**await _change(request, change), "key": key})


async def remove_user(request: Request) -> Response:
    need_admin(request, "remove users")
    await _change(request, people.remove_user, request.path_params["user"], time.time())
    return answer({})


async def list_keys(request: Request) -> Response:
    caller = caller_of(request)
    await tracker_of(request).accounts.store_uses()
    keys = await tracker_of(request).read(api_keys.list_all, time.time())
    return answer([key for key in keys if permissions.may_manage_keys(caller, key["user"])])


async def add_key(request: Request) -> Response:
    given = await read_texts(request)
    owner = _owner(request, given.get("user"))
    try:
        return answer(await tracker_of(request).accounts.add_key(owner, _wanted(request, given)))
    except people.Missing as error:
        raise HttpError(404, str(error)) from error


def _wanted(request: Request, given: Mapping[str, Any]) -> Wanted:
    """`kind` is what the key is for: a person, who may want one for runs only, a shell or a run."""
    label = arguments.field(given, "label", str) if given.get("label") is not None else ""
    label, kind = label[:_LONGEST_LABEL], given.get("kind") or api_keys.PERSON
    scope = given.get("scope") or permissions.ALL
    if kind == api_keys.PERSON and scope in (permissions.ALL, permissions.RUNS):
        return Wanted(label, scope=scope)
    if kind not in (api_keys.SHELL, api_keys.RUN):
        raise HttpError(400, f"there are no keys of kind {kind!r} with scope {scope!r}")
    run = None if given.get("run") is None else arguments.field(given, "run", int)
    port = tracker_of(request).accounts.port if run is None else api_keys.BEHIND_DOOR
    wanted = api_keys.handed_out(kind, label, port, run)
    if given.get("days") is None:
        return wanted
    days = max(1, min(arguments.field(given, "days", int), _MOST_DAYS))
    return replace(wanted, lifetime=days * api_keys.DAY)


async def revoke_key(request: Request) -> Response:
    owner = _owner(request, request.path_params["user"])
    own = api_keys.hash_key(tracker_of(request).accounts.own_key)
    await _change(request, people.revoke_key, owner, request.path_params["key"], own)
    return answer({})


async def revoke_keys(request: Request) -> Response:
    """All keys of a kind that were handed out to what a user runs."""
    owner, kind = _owner(request, request.path_params["user"]), request.query_params.get("kind")
    if kind not in api_keys.HANDED_OUT:
        raise HttpError(400, f"kind: one of {', '.join(api_keys.HANDED_OUT)}")
    return answer({"revoked": await _change(request, people.revoke_kind, owner, kind)})


async def list_teams(request: Request) -> Response:
    caller = caller_of(request)
    teams = await tracker_of(request).read(people.list_teams)
    return answer([team for team in teams if permissions.may_manage_team(caller, team["name"])])


async def add_team(request: Request) -> Response:
    given, caller = await read_texts(request), caller_of(request)
    name = arguments.field(given, "name", str)
    members = arguments.texts(given, "members") if given.get("members") is not None else []
    await _change(request, invitations.make_team, name, caller, dict.fromkeys(members), time.time())
    return answer({})


async def remove_team(request: Request) -> Response:
    await _change(request, people.remove_team, _team(request))
    return answer({})


async def add_member(request: Request) -> Response:
    """Take somebody in, invite them, or accept an invitation: whatever the caller may."""
    team, user = request.path_params["team"], request.path_params["user"]
    await _change(request, invitations.take_in, team, user, caller_of(request), time.time())
    return answer({})


async def remove_member(request: Request) -> Response:
    """Let somebody go, take an invitation back, leave, or decline."""
    team, user = request.path_params["team"], request.path_params["user"]
    await _change(request, invitations.let_go, team, user, caller_of(request))
    return answer({})


async def _change(
    request: Request,
    change: Callable[Concatenate[sqlite3.Connection, Given], Result],
    *args: Given.args,
    **kwargs: Given.kwargs,
) -> Result:
    try:
        return await tracker_of(request).accounts.change(change, *args, **kwargs)
    except BadName as error:
        raise HttpError(400, str(error)) from error
    except people.Missing as error:
        raise HttpError(404, str(error)) from error
    except (people.Taken, people.Needed) as error:
        raise HttpError(409, str(error)) from error


def _owner(request: Request, named: object) -> str:
    """Whose keys are spoken of: the caller's, unless the admin names somebody."""
    caller = caller_of(request)
    owner = named if isinstance(named, str) and named else caller.name
    if not permissions.may_manage_keys(caller, owner):
        raise HttpError(404, f"there is no user {owner!r}")
    return owner


def _team(request: Request) -> str:
    team: str = request.path_params["team"]
    if not permissions.may_manage_team(caller_of(request), team):
        raise HttpError(404, f"there is no team {team!r}")
    return team


ENDPOINTS = [
    Endpoint("GET", "/api/me", who_am_i, RUNS),
    Endpoint("GET", "/api/users", list_users),
    Endpoint("GET", "/api/keys", list_keys),
    Endpoint("GET", "/api/teams", list_teams),
    # A page that asks for these must have shown a code or a key a moment ago.
    Endpoint("POST", "/api/users", add_user, access=Access.CONFIRMED),
    Endpoint("DELETE", "/api/users/{user}", remove_user, access=Access.CONFIRMED),
    Endpoint("POST", "/api/keys", add_key, access=Access.CONFIRMED),
    Endpoint("DELETE", "/api/users/{user}/keys", revoke_keys, access=Access.CONFIRMED),
    Endpoint("DELETE", "/api/users/{user}/keys/{key}", revoke_key, access=Access.CONFIRMED),
    Endpoint("POST", "/api/teams", add_team, access=Access.CONFIRMED),
    Endpoint("DELETE", "/api/teams/{team}", remove_team, access=Access.CONFIRMED),
    Endpoint("PUT", "/api/teams/{team}/members/{user}", add_member, access=Access.CONFIRMED),
    Endpoint("DELETE", "/api/teams/{team}/members/{user}", remove_member, access=Access.CONFIRMED),
]
