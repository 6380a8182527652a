"""The own API's routes for users, keys and teams."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Concatenate, ParamSpec, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from runyard.server.http import arguments
from runyard.server.http.access import caller_of, need_admin, tracker_of
from runyard.server.http.answers import HttpError, answer
from runyard.server.http.routes import Access, Endpoints
from runyard.server.people import api_keys, invitations, people, permissions
from runyard.server.people.accounts import new_key
from runyard.server.people.api_keys import Wanted
from runyard.server.people.permissions import RUNS
from runyard.server.store.names import BadName
from runyard.server.tracker import Tracker
from runyard.shapes.people import Key, Me, NewKey, Team, User

api = Endpoints("people")

Given = ParamSpec("Given")
Result = TypeVar("Result")

log = logging.getLogger(__name__)

_LONGEST_LABEL = 200
_MOST_DAYS = 366
_NOTE_EVERY = 60.0


@dataclass
class NewUser:
    name: str


@dataclass
class NewTeam:
    name: str
    members: list[str] = field(default_factory=list)


@dataclass
class WantedKey:
    """`kind`: for a person, who may want one for runs only (`scope`), a shell or a run."""

    user: str | None = None
    label: str = ""
    kind: str | None = None
    scope: str | None = None
    run: int | None = None
    days: int | None = None


async def note_uses(tracker: Tracker) -> None:
    """Write down, now and then, when keys were last used, and let go of those that ended."""
    while True:
        await asyncio.sleep(_NOTE_EVERY)
        try:
            await tracker.accounts.keep_up_keys()
        except Exception as error:  # A full disk, say. The next time may be better.
            log.warning("could not note when keys were used: %s", error)


@api.get("/api/me", RUNS, answer=Me)
async def who_am_i(request: Request) -> Response:
    """Whose key this is."""
    caller = caller_of(request)
    return answer(
        {
            "name": caller.name,
            "admin": caller.admin,
            "teams": sorted(caller.teams),
            "invitations": await tracker_of(request).read(invitations.of_user, caller.name),
        }
    )


@api.get("/api/users", answer=list[User])
async def list_users(request: Request) -> Response:
    """Users."""
    caller = caller_of(request)
    users = await tracker_of(request).read(people.list_users)
    return answer(
        [
            {**user, "teams": permissions.known_teams(caller, user["name"], user["teams"])}
            for user in users
            if permissions.may_see(caller, user["name"], user["teams"])
        ]
    )


@api.post("/api/users", access=Access.CONFIRMED, body=NewUser, answer=NewKey)
async def add_user(request: Request) -> Response:
    """Add a user."""
    need_admin(request, "add users")
    name, key = (await arguments.read(request, NewUser)).name, new_key()

    def change(connection: sqlite3.Connection) -> dict[str, Any]:
        people.add_user(connection, name, time.time())
        return people.add_key(connection, name, key, Wanted("first"), time.time())

    # The one time that the key is told.
    return answer({**await _change(request, change), "key": key})


@api.delete("/api/users/{user}", access=Access.CONFIRMED)
async def remove_user(request: Request) -> Response:
    """Remove a user."""
    need_admin(request, "remove users")
    await _change(request, people.remove_user, request.path_params["user"], time.time())
    return answer({})


@api.get("/api/keys", answer=list[Key])
async def list_keys(request: Request) -> Response:
    """Keys, without their secrets."""
    caller = caller_of(request)
    await tracker_of(request).accounts.store_uses()
    keys = await tracker_of(request).read(api_keys.list_all, time.time())
    return answer([key for key in keys if permissions.may_manage_keys(caller, key["user"])])


@api.post("/api/keys", access=Access.CONFIRMED, body=WantedKey, answer=NewKey)
async def add_key(request: Request) -> Response:
    """Make a key."""
    body = await arguments.read(request, WantedKey)
    owner = _owner(request, body.user)
    try:
        return answer(await tracker_of(request).accounts.add_key(owner, _wanted(request, body)))
    except people.Missing as error:
        raise HttpError(404, str(error)) from error


def _wanted(request: Request, body: WantedKey) -> Wanted:
    label, kind = body.label[:_LONGEST_LABEL], body.kind or api_keys.PERSON
    scope = body.scope or permissions.ALL
    if kind == api_keys.PERSON and scope in (permissions.ALL, permissions.RUNS):
        return Wanted(label, scope=scope)
    if kind not in (api_keys.SHELL, api_keys.RUN):
        raise HttpError(400, f"there are no keys of kind {kind!r} with scope {scope!r}")
    port = tracker_of(request).accounts.port if body.run is None else api_keys.BEHIND_DOOR
    wanted = api_keys.handed_out(kind, label, port, body.run)
    if body.days is None:
        return wanted
    days = max(1, min(body.days, _MOST_DAYS))
    return replace(wanted, lifetime=days * api_keys.DAY)


@api.delete("/api/users/{user}/keys/{key}", access=Access.CONFIRMED)
async def revoke_key(request: Request) -> Response:
    """Revoke a key."""
    owner = _owner(request, request.path_params["user"])
    own = api_keys.hash_key(tracker_of(request).accounts.own_key)
    await _change(request, people.revoke_key, owner, request.path_params["key"], own)
    return answer({})


@api.delete(
    "/api/users/{user}/keys", access=Access.CONFIRMED, query={"kind": str}, answer={"revoked": int}
)
async def revoke_keys(request: Request) -> Response:
    """Revoke all keys of a kind."""
    owner, kind = _owner(request, request.path_params["user"]), request.query_params.get("kind")
    if kind not in api_keys.HANDED_OUT:
        raise HttpError(400, f"kind: one of {', '.join(api_keys.HANDED_OUT)}")
    return answer({"revoked": await _change(request, people.revoke_kind, owner, kind)})


@api.get("/api/teams", answer=list[Team])
async def list_teams(request: Request) -> Response:
    """Teams."""
    caller = caller_of(request)
    teams = await tracker_of(request).read(people.list_teams)
    return answer([team for team in teams if permissions.may_manage_team(caller, team["name"])])


@api.post("/api/teams", access=Access.CONFIRMED, body=NewTeam)
async def add_team(request: Request) -> Response:
    """Make a team."""
    body, caller = await arguments.read(request, NewTeam), caller_of(request)
    members = dict.fromkeys(body.members)
    await _change(request, invitations.make_team, body.name, caller, members, time.time())
    return answer({})


@api.delete("/api/teams/{team}", access=Access.CONFIRMED)
async def remove_team(request: Request) -> Response:
    """Give up a team."""
    await _change(request, invitations.end_team, _team(request), time.time())
    return answer({})


@api.put("/api/teams/{team}/members/{user}", access=Access.CONFIRMED)
async def add_member(request: Request) -> Response:
    """Invite somebody; accept, for oneself; the admin takes them in at once."""
    team, user = request.path_params["team"], request.path_params["user"]
    await _change(request, invitations.take_in, team, user, caller_of(request), time.time())
    return answer({})


@api.delete("/api/teams/{team}/members/{user}", access=Access.CONFIRMED)
async def remove_member(request: Request) -> Response:
    """Let somebody go, or take an invitation back; leave or decline, for oneself."""
    team, user = request.path_params["team"], request.path_params["user"]
    await _change(request, invitations.let_go, team, user, caller_of(request), time.time())
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


def _owner(request: Request, named: str | None) -> str:
    """Whose keys are spoken of: the caller's, unless the admin names somebody."""
    caller = caller_of(request)
    owner = named or caller.name
    if not permissions.may_manage_keys(caller, owner):
        raise HttpError(404, f"there is no user {owner!r}")
    return owner


def _team(request: Request) -> str:
    team: str = request.path_params["team"]
    if not permissions.may_manage_team(caller_of(request), team):
        raise HttpError(404, f"there is no team {team!r}")
    return team
