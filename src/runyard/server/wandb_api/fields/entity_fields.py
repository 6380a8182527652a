"""Entities as GraphQL fields: what belongs to a user or a team, and who is in a team."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from runyard.server.artifacts import blobs
from runyard.server.people import invitations, people, permissions
from runyard.server.store.names import BadName
from runyard.server.wandb_api.graphql.ids import opaque, text_of
from runyard.server.wandb_api.graphql.inputs import as_object, as_text
from runyard.server.wandb_api.graphql.request import Request
from runyard.server.wandb_api.graphql.source import Refusal, Source

_MEMBER = "Member"


def queries(request: Request) -> Source:
    async def entity(given: Mapping[str, Any]) -> Source | None:
        named = request.entity(as_text(given, "name"))
        return _entity_fields(request, named) if request.may_read(named) else None

    return {"entity": entity}


def mutations(request: Request) -> Source:
    async def create_team(arguments: Mapping[str, Any]) -> Source:
        given = as_object(arguments, "input")
        name = as_text(given, "teamName") or ""
        # Members are equals: who is named as the team's admin is one more.
        others = list(filter(None, [as_text(given, "teamAdminUserName")]))
        await _change(request, invitations.make_team, name, request.caller, others, time.time())
        return {"entity": {**_entity_fields(request, name), "limits": None}}

    async def create_invite(arguments: Mapping[str, Any]) -> Source:
        given = as_object(arguments, "input")
        team, user = _team(request, given), as_text(given, "username")
        if user is None:
            raise Refusal("users have no email addresses here: name the user")
        await _change(request, invitations.take_in, team, user, request.caller, time.time())
        return {
            "invite": {
                "id": opaque(_MEMBER, f"{team}/{user}"),
                "name": user,
                "email": None,
                "createdAt": None,
                "toUser": {"name": user},
            }
        }

    async def delete_invite(arguments: Mapping[str, Any]) -> Source:
        given = as_object(arguments, "input")
        team = _team(request, given)
        place, _, user = text_of(_MEMBER, as_text(given, "id") or "").partition("/")
        if place != team:
            raise Refusal(f"this is no member of {team!r}")
        await _change(request, invitations.let_go, team, user, request.caller)
        return {"success": True}

    return {
        "createTeam": create_team,
        "createInvite": create_invite,
        "deleteInvite": delete_invite,
    }


def _entity_fields(request: Request, name: str) -> Source:
    caller, tracker = request.caller, request.tracker

    async def is_team(_given: Mapping[str, Any]) -> bool:
        return await tracker.read(people.members_of, name) is not None

    async def kind(_given: Mapping[str, Any]) -> str:
        return "team" if await is_team(_given) else "user"

    async def members(_given: Mapping[str, Any]) -> list[Source]:
        team = await tracker.read(people.members_of, name)
        found = await tracker.read(people.list_users)
        mine = [name] if team is None else team
        invited = await tracker.read(invitations.of_team, name)
        return [
            *(_member(name, user["name"]) for user in found if user["name"] in mine),
            *(_member(name, user, pending=True) for user in invited),
        ]

    async def stored(_given: Mapping[str, Any]) -> int:
        return await tracker.read(blobs.stored_bytes, name)

    async def is_free(_given: Mapping[str, Any]) -> bool:
        return not await tracker.read(people.is_taken, name)

    return {
        "__typename": "Entity",
        "id": name,
        "name": name,
        "organization": None,
        "photoUrl": None,
        "available": is_free,
        "readOnly": not request.may_write(name),
        "readOnlyAdmin": not (caller.name == name or permissions.may_manage_team(caller, name)),
        "isTeam": is_team,
        "entityType": kind,
        "members": members,
        "storageBytes": stored,
        # Who may read what is not a setting: it is private, and code comes if the client sends it.
        "privateOnly": True,
        "defaultAccess": "PRIVATE",
        "codeSavingEnabled": True,
        "isPaid": False,
    }


def _member(entity: str, user: str, *, pending: bool = False) -> Source:
    return {
        "__typename": _MEMBER,
        "id": opaque(_MEMBER, f"{entity}/{user}"),
        "name": user,
        "username": user,
        "email": None,
        "photoUrl": None,
        "admin": True,
        "pending": pending,
        "accountType": "USER",
        "apiKey": None,
    }


def _team(request: Request, given: Mapping[str, Any]) -> str:
    team = as_text(given, "entityName") or ""
    if not permissions.may_manage_team(request.caller, team):
        raise Refusal(f"there is no team {team[:100]!r}")
    return team


async def _change(request: Request, change: Any, *args: Any, **more: Any) -> None:
    try:
        await request.tracker.accounts.change(change, *args, **more)
    except (BadName, people.Missing, people.Taken, people.Needed) as error:
        raise Refusal(str(error)) from error
