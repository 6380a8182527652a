"""Users as GraphQL fields: who asks, whom they may know of, and their keys."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import Any

from runyard.server.people import api_keys, people, permissions
from runyard.server.wandb_api.graphql.inputs import Arguments, opaque, text_of
from runyard.server.wandb_api.graphql.pages import connection, edge
from runyard.server.wandb_api.graphql.request import Refusal, Request, Source

# Clients warn when they are newer than this; there is no newest client for us.
_CLIENT_VERSIONS = {"max_cli_version": "0.999.0", "min_cli_version": "0.0.0"}
# What newer clients ask for by name before they use it. They leave out what is not named.
_FEATURES = (
    "ARTIFACT_TAGS",
    "FILESTREAM_GZIP",
    "MARK_RUN_FILES_UPLOADED",
    "SWEEPS_LOCAL_SCHEDULER",
    "TOTAL_COUNT_IN_FILE_CONNECTION",
    "USE_ARTIFACT_WITH_ENTITY_AND_PROJECT_INFORMATION",
)
_KEY = "ApiKey"
SERVICE = "SERVICE"
"""The type of an account that is no person's."""


def queries(request: Request) -> Source:
    caller = request.caller

    async def users(arguments: Arguments) -> Source:
        """Whose names begin with what is asked for; the one of exactly that name comes first."""
        wanted = arguments.text("query") or ""
        known = [
            user
            for user in await request.tracker.read(people.list_users)
            if user["name"].startswith(wanted)
            and permissions.may_see(caller, user["name"], user["teams"])
        ]
        return connection(
            edge(
                user["name"],
                user_fields(
                    request, user["name"], user["admin"], user["teams"], service=user["service"]
                ),
            )
            for user in sorted(known, key=lambda user: (len(user["name"]), user["name"]))
        )

    return {
        "viewer": user_fields(request, caller.name, caller.admin, caller.teams),
        "users": users,
        "serverInfo": {
            "features": [{"name": name, "isEnabled": True} for name in _FEATURES],
            "cliVersionInfo": _CLIENT_VERSIONS,
            "latestLocalVersionInfo": None,
        },
    }


def user_fields(
    request: Request,
    name: str,
    admin: bool,
    teams: Collection[str],
    *,
    service: str | None = None,
) -> Source:
    """A user, with their keys for those who may manage them."""

    async def keys(_arguments: Arguments) -> Source:
        if not permissions.may_manage_keys(request.caller, name):
            return connection(())
        every_key = await request.tracker.read(api_keys.list_all, time.time())
        return connection(edge(key["id"], _key(key)) for key in every_key if key["user"] == name)

    return {
        "__typename": "User",
        "id": opaque("User", name),
        "entity": name,
        "name": name,
        "username": name,
        # Nobody was ever asked for one.
        "email": "",
        "photoUrl": None,
        "accountType": "USER" if service is None else SERVICE,
        "admin": admin,
        "flags": "{}",
        "deletedAt": None,
        "teams": connection(
            edge(team, {"id": team, "name": team})
            for team in (name, *permissions.known_teams(request.caller, name, teams))
        ),
        "apiKeys": keys,
    }


def mutations(request: Request) -> Source:
    caller = request.caller

    async def generate_api_key(arguments: Arguments) -> Source:
        label = arguments.text("description") or ""
        made = await request.tracker.accounts.add_key(caller.name, api_keys.Wanted(label))
        # The one time that the key is told: clients look for it in the name.
        return {"apiKey": {**_key(made), "name": made["key"]}}

    async def delete_api_key(arguments: Arguments) -> Source:
        place = text_of(_KEY, arguments.text("id") or "")
        owner, _, key = place.partition("/")
        if not permissions.may_manage_keys(caller, owner):
            raise Refusal("there is no such key")
        own = api_keys.hash_key(request.tracker.accounts.own_key)
        try:
            await request.tracker.accounts.change(people.revoke_key, owner, key, own)
        except (people.Missing, people.Needed) as error:
            raise Refusal(str(error)) from error
        return {"success": True}

    return {"generateApiKey": generate_api_key, "deleteApiKey": delete_api_key}


def _key(key: Mapping[str, Any]) -> Source:
    return {
        "__typename": _KEY,
        "id": opaque(_KEY, f"{key['user']}/{key['id']}"),
        "name": key["starts"] or key["id"],
        "description": key["label"],
    }
