"""The root fields of W&B's GraphQL surface: what a client that tracks a run asks for."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runyard.server.graphql.executor import Refusal, Source
from runyard.server.graphql.inputs import as_list, as_object, as_text, read_upsert
from runyard.server.graphql.introspection import describe_type
from runyard.server.graphql.runs import resume_fields, run_fields, upserted_fields
from runyard.server.store import runs, upserts
from runyard.server.tracker import Caller, Tracker
from runyard.server.uploads import UnsafeName, check_name

# Clients warn when they are newer than this; there is no newest client for us.
_CLIENT_VERSIONS = {"max_cli_version": "0.999.0", "min_cli_version": "0.0.0"}


@dataclass(frozen=True)
class Request:
    """Who asks, and the address that they reached us under."""

    tracker: Tracker
    caller: Caller
    base_url: str

    def entity(self, named: str | None) -> str:
        """Clients leave the entity out or empty where they mean their own."""
        return named or self.caller.name


def roots(request: Request) -> dict[str, Source]:
    fields = _Fields(request)
    return {
        "query": {
            "__typename": "Query",
            "viewer": fields.viewer,
            "serverInfo": fields.server_info,
            "entity": fields.entity,
            "model": fields.project,
            "project": fields.project,
            "__type": lambda arguments: describe_type(as_text(arguments, "name")),
        },
        "mutation": {
            "__typename": "Mutation",
            "upsertBucket": fields.upsert_bucket,
            "createRunFiles": fields.create_run_files,
        },
    }


class _Fields:
    def __init__(self, request: Request) -> None:
        self._request = request
        self._tracker = request.tracker

    def viewer(self, _arguments: Mapping[str, Any]) -> Source:
        name = self._request.caller.name
        return {
            "__typename": "User",
            "id": f"user-{self._request.caller.key}",
            "entity": name,
            "name": name,
            "username": name,
            "email": "",
            "admin": False,
            "flags": "{}",
            "deletedAt": None,
            "teams": {"edges": []},
            "apiKeys": {"edges": []},
        }

    def server_info(self, _arguments: Mapping[str, Any]) -> Source:
        return {
            "features": [],
            "cliVersionInfo": _CLIENT_VERSIONS,
            "latestLocalVersionInfo": None,
        }

    def entity(self, arguments: Mapping[str, Any]) -> Source:
        name = self._request.entity(as_text(arguments, "name"))
        return {"id": name, "name": name, "organization": None}

    async def project(self, arguments: Mapping[str, Any]) -> Source:
        name = as_text(arguments, "name") or as_text(arguments, "project") or ""
        entity = self._request.entity(as_text(arguments, "entityName"))

        async def run(given: Mapping[str, Any]) -> Source | None:
            row = await self._tracker.read(runs.by_path, entity, name, as_text(given, "name") or "")
            return None if row is None else run_fields(self._tracker, row)

        async def bucket(given: Mapping[str, Any]) -> Source | None:
            row = await self._tracker.read(runs.by_path, entity, name, as_text(given, "name") or "")
            # A run that only we know of has not started, as far as its client is concerned.
            if row is None or not row["seen_client"]:
                return None
            return await self._tracker.read(resume_fields, row)

        return {
            "__typename": "Project",
            "id": f"{entity}/{name}",
            "name": name,
            "entityName": entity,
            "entity": {"id": entity, "name": entity},
            "run": run,
            "bucket": bucket,
        }

    async def upsert_bucket(self, arguments: Mapping[str, Any]) -> Source:
        said = read_upsert(as_object(arguments, "input"), self._request.caller)
        try:
            row, inserted = await self._tracker.write(upserts.upsert, said, time.time())
        except upserts.Unknown as error:
            raise Refusal(str(error)) from error
        bucket = await self._tracker.read(upserted_fields, row)
        return {"bucket": bucket, "inserted": inserted}

    async def create_run_files(self, arguments: Mapping[str, Any]) -> Source:
        given = as_object(arguments, "input")
        entity = self._request.entity(as_text(given, "entityName"))
        project, run = as_text(given, "projectName") or "", as_text(given, "runName") or ""
        row = await self._tracker.read(runs.by_path, entity, project, run)
        if row is None:
            raise Refusal(f"no run {run} in {entity}/{project}")
        files = []
        for name in as_list(given, "files"):
            try:
                check_name(name)
            except UnsafeName as error:
                raise Refusal(str(error)) from error
            url = self._tracker.uploads.url(self._request.base_url, row["key"], name)
            files.append({"name": name, "uploadUrl": url})
        return {"runID": str(row["key"]), "uploadHeaders": [], "files": files}
