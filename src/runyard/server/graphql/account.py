"""Who asks, and what kind of server this is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runyard.server.graphql.executor import Source
from runyard.server.graphql.inputs import as_text
from runyard.server.graphql.request import Request

# Clients warn when they are newer than this; there is no newest client for us.
_CLIENT_VERSIONS = {"max_cli_version": "0.999.0", "min_cli_version": "0.0.0"}


def queries(request: Request) -> Source:
    name = request.caller.name

    def entity(arguments: Mapping[str, Any]) -> Source | None:
        named = request.entity(as_text(arguments, "name"))
        if not request.may_read(named):
            return None
        return {"id": named, "name": named, "organization": None}

    return {
        "viewer": {
            "__typename": "User",
            "id": f"user-{request.caller.key}",
            "entity": name,
            "name": name,
            "username": name,
            "email": "",
            "admin": request.caller.admin,
            "flags": "{}",
            "deletedAt": None,
            "teams": {
                "edges": [
                    {"node": {"id": team, "name": team}}
                    for team in (name, *sorted(request.caller.teams))
                ]
            },
            "apiKeys": {"edges": []},
        },
        "serverInfo": {
            "features": [],
            "cliVersionInfo": _CLIENT_VERSIONS,
            "latestLocalVersionInfo": None,
        },
        "entity": entity,
    }
