"""The own API's routes for users, keys and teams."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from runyard.server import arguments, permissions
from runyard.server.access import caller_of, need_admin, tracker_of
from runyard.server.answers import Unacceptable, answer, read_texts
from runyard.server.store import people
from runyard.server.store.names import BadName
from runyard.server.tracker import Tracker, new_key

Given = ParamSpec("Given")
Result = TypeVar("Result")

log = logging.getLogger(__name__)

_LONGEST_LABEL = 200
_NOTE_EVERY = 60.0


async def note_uses(tracker: Tracker) -> None:
    """Write down, now and then, when keys were last used."""
    while True:
        await asyncio.sleep(_NOTE_EVERY)
        try:
            await tracker.store_uses()
        except Exception as error:  # A full disk, say. The next time may be better.
            log.warning("could not note when keys were used: %s", error)


async def who_am_i(request: Request) -> Response:
    caller = caller_of(request)
    return answer({"name": caller.name, "admin": caller.admin, "teams": sorted(caller.teams)})


async def list_users(request: Request) -> Response:
    caller = caller_of(request)
    users = await tracker_of(request).read(people.list_users)
    return answer([u for u in users if permissions.may_see(caller, u["name"], u["teams"])])


async def add_user(request: Request) -> Response:
    need_admin(request, "add users")
    given = await read_texts(request)
    name, key = arguments.field(given, "name", str), new_key()

    def change(connection: sqlite3.Connection) -> dict[str, Any]:
        people.add_user(connection, name, time.time())
        return people.add_key(connection, name, key, "first", time.time())

    # The one time that the key is told.
    return answer({**await _change(request, change), "key": key})


async def remove_user(request: Request) -> Response:
    need_admin(request, "remove users")
    await _change(request, people.remove_user, request.path_params["user"], time.time())
    return answer({})


async def list_keys(request: Request) -> Response:
    caller = caller_of(request)
    await tracker_of(request).store_uses()
    keys = await tracker_of(request).read(people.list_keys)
    return answer([key for key in keys if permissions.may_manage_keys(caller, key["user"])])


async def add_key(request: Request) -> Response:
    given = await read_texts(request)
    owner = _owner(request, given.get("user"))
    label = arguments.field(given, "label", str) if given.get("label") is not None else ""
    key = new_key()
    told = await _change(request, people.add_key, owner, key, label[:_LONGEST_LABEL], time.time())
    return answer({**told, "key": key})


async def revoke_key(request: Request) -> Response:
    owner = _owner(request, request.path_params["user"])
    own = people.hash_key(tracker_of(request).own_key)
    await _change(request, people.revoke_key, owner, request.path_params["key"], own)
    return answer({})


async def list_teams(request: Request) -> Response:
    caller = caller_of(request)
    teams = await tracker_of(request).read(people.list_teams)
    return answer([team for team in teams if permissions.may_manage_team(caller, team["name"])])


async def add_team(request: Request) -> Response:
    given, caller = await read_texts(request), caller_of(request)
    name = arguments.field(given, "name", str)
    members = arguments.texts(given, "members") if given.get("members") is not None else []
    await _change(
        request,
        people.add_team,
        name,
        dict.fromkeys([caller.name, *members]),
        time.time(),
        adopt=caller.admin,
    )
    return answer({})


async def remove_team(request: Request) -> Response:
    await _change(request, people.remove_team, _team(request))
    return answer({})


async def add_member(request: Request) -> Response:
    await _change(request, people.add_member, _team(request), request.path_params["user"])
    return answer({})


async def remove_member(request: Request) -> Response:
    await _change(request, people.remove_member, _team(request), request.path_params["user"])
    return answer({})


async def _change(
    request: Request,
    change: Callable[Concatenate[sqlite3.Connection, Given], Result],
    *args: Given.args,
    **kwargs: Given.kwargs,
) -> Result:
    try:
        return await tracker_of(request).change_people(change, *args, **kwargs)
    except BadName as error:
        raise Unacceptable(400, str(error)) from error
    except people.Missing as error:
        raise Unacceptable(404, str(error)) from error
    except (people.Taken, people.Needed) as error:
        raise Unacceptable(409, str(error)) from error


def _owner(request: Request, named: object) -> str:
    """Whose keys are spoken of: the caller's, unless the admin names somebody."""
    caller = caller_of(request)
    owner = named if isinstance(named, str) and named else caller.name
    if not permissions.may_manage_keys(caller, owner):
        raise Unacceptable(404, f"there is no user {owner!r}")
    return owner


def _team(request: Request) -> str:
    team: str = request.path_params["team"]
    if not permissions.may_manage_team(caller_of(request), team):
        raise Unacceptable(404, f"there is no team {team!r}")
    return team


# A page that asks for these must have shown a code or a key a moment ago.
CONFIRMED_ROUTES = [
    Route("/api/users", add_user, methods=["POST"]),
    Route("/api/users/{user}", remove_user, methods=["DELETE"]),
    Route("/api/keys", add_key, methods=["POST"]),
    Route("/api/users/{user}/keys/{key}", revoke_key, methods=["DELETE"]),
    Route("/api/teams", add_team, methods=["POST"]),
    Route("/api/teams/{team}", remove_team, methods=["DELETE"]),
    Route("/api/teams/{team}/members/{user}", add_member, methods=["PUT"]),
    Route("/api/teams/{team}/members/{user}", remove_member, methods=["DELETE"]),
]
ROUTES = [
    Route("/api/me", who_am_i),
    Route("/api/users", list_users),
    Route("/api/keys", list_keys),
    Route("/api/teams", list_teams),
    *CONFIRMED_ROUTES,
]
