"""Entities as GraphQL fields: what belongs to a user or a team, and who is in a team."""

from __future__ import annotations

import time
from typing import Any

from runyard.server.artifacts import blobs
from runyard.server.people import invitations, people, permissions
from runyard.server.store.names import BadName
from runyard.server.wandb_api.fields import account_fields
from runyard.server.wandb_api.graphql.inputs import Arguments, opaque, text_of
from runyard.server.wandb_api.graphql.request import Refusal, Request, Source

_MEMBER = "Member"
_REFUSED = (BadName, people.Missing, people.Taken, people.Needed)


def queries(request: Request) -> Source:
    async def entity(arguments: Arguments) -> Source:
        named = request.entity(arguments, "name")
        return _entity_fields(request, named, is_here=request.may_read(named))

    # Entities belong to no organization here, so there is none of any name.
    return {"entity": entity, "organization": None}


def mutations(request: Request) -> Source:
    async def create_team(arguments: Arguments) -> Source:
        name = arguments.text("teamName") or ""
        # Members are equals: who is named as the team's admin is one more.
        others = list(filter(None, [arguments.text("teamAdminUserName")]))
        await _change(request, invitations.make_team, name, request.caller, others, time.time())
        return {"entity": {**_entity_fields(request, name, is_here=True), "limits": None}}

    async def create_invite(arguments: Arguments) -> Source:
        team, user = _team(request, arguments), arguments.text("username")
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

    async def delete_invite(arguments: Arguments) -> Source:
        team = _team(request, arguments)
        place, _, user = text_of(_MEMBER, arguments.text("id") or "").partition("/")
        if place != team:
            raise Refusal(f"this is no member of {team!r}")
        await _change(request, invitations.let_go, team, user, request.caller, time.time())
        return {"success": True}

    async def create_service_account(arguments: Arguments) -> Source:
        team, purpose = _team(request, arguments), arguments.text("description") or ""
        accounts = request.tracker.accounts
        try:
            name = await accounts.add_service_account(team, purpose, request.caller)
        except _REFUSED as error:
            raise Refusal(str(error)) from error
        return {"user": account_fields.user_fields(request, name, False, [team], service=purpose)}

    return {
        "createTeam": create_team,
        "createInvite": create_invite,
        "deleteInvite": delete_invite,
        "createServiceAccount": create_service_account,
    }


def _entity_fields(request: Request, name: str, *, is_here: bool) -> Source:
    """An entity; of one that is not there for the caller, what W&B answers: it holds nothing."""
    caller, tracker = request.caller, request.tracker

    async def is_team(_arguments: Arguments) -> bool:
        return is_here and await tracker.read(people.members_of, name) is not None

    async def kind(_arguments: Arguments) -> str:
        return "team" if await is_team(_arguments) else "user"

    async def members(_arguments: Arguments) -> list[Source]:
        if not is_here:
            return []
        team = await tracker.read(people.members_of, name)
        users = await tracker.read(people.list_users)
        mine = [user for user in users if user["name"] in ([name] if team is None else team)]
        invited = await tracker.read(invitations.of_team, name)
        # The client takes the last one for the service account that it has just made.
        services = sorted(
            (user for user in mine if user["service"] is not None),
            key=lambda user: float(user["created_at"]),
        )
        return [
            *(_member(name, user["name"]) for user in mine if user["service"] is None),
            *(_member(name, user, pending=True) for user in invited),
            *(_service(request, name, user["name"]) for user in services),
        ]

    async def is_free(_arguments: Arguments) -> bool:
        return not await tracker.read(people.is_taken, name)

    return {
        "__typename": "Entity",
        "id": name,
        "name": name,
        "organization": None,
        "photoUrl": None,
        "available": is_free if is_here else True,
        "readOnly": not request.may_write(name),
        "readOnlyAdmin": not (caller.name == name or permissions.may_manage_team(caller, name)),
        "isTeam": is_team,
        "entityType": kind,
        "members": members,
        "storageBytes": request.reads(blobs.stored_bytes, name) if is_here else 0,
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


def _service(request: Request, entity: str, name: str) -> Source:
    def key(_arguments: Arguments) -> str | None:
        return request.tracker.accounts.take_service_key(request.caller, name)

    return {
        **_member(entity, name),
        "admin": False,
        "accountType": account_fields.SERVICE,
        "apiKey": key,
    }


def _team(request: Request, arguments: Arguments) -> str:
    team = arguments.text("entityName") or ""
    if not permissions.may_manage_team(request.caller, team):
        raise Refusal(f"there is no team {team[:100]!r}")
    return team


async def _change(request: Request, change: Any, *args: Any, **more: Any) -> None:
    try:
        await request.tracker.accounts.change(change, *args, **more)
    except _REFUSED as error:
        raise Refusal(str(error)) from error
