"""Artifacts as another server of W&B's protocol needs them to have the same."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from runyard.server.artifacts import aliases, artifacts, manifests, visibility
from runyard.server.http.access import caller_of, readable_run, tracker_of
from runyard.server.http.answers import HttpError, answer
from runyard.server.http.routes import Endpoints
from runyard.server.people.permissions import RUNS, Caller, may_read, readable
from runyard.server.runs import runs
from runyard.server.store.database import LARGEST_KEY
from runyard.server.store.sql import Row
from runyard.shapes.runs import ArtifactRecord, RunArtifacts

api = Endpoints("runs")

_PAGE = 500
_MOST_USERS = 100
_COLUMNS = ("key", "entity", "type", "digest", "description", "metadata", "history_step", "ttl",
            "size", "version")  # fmt: skip


@api.get("/api/runs/{key:int}/artifacts", RUNS, answer=RunArtifacts)
async def of_run(request: Request) -> Response:
    """What a run logged and used."""
    row, caller = await readable_run(request), caller_of(request)
    return answer(await tracker_of(request).read(_of_run, row["key"], caller))


@api.get("/api/artifacts/{key:int}", RUNS, answer=ArtifactRecord)
async def one(request: Request) -> Response:
    """A version of an artifact."""
    row = await _readable(request)
    return answer(await tracker_of(request).read(_describe, row, caller_of(request)))


@api.get("/api/artifacts/{key:int}/manifest", RUNS, answer={"contents": dict[str, Any]})
async def manifest(request: Request) -> Response:
    """What it holds."""
    row = await _readable(request)
    contents = await manifests.written(tracker_of(request), row["manifest"])
    if contents is None:
        raise HttpError(404, manifests.GONE)
    return StreamingResponse(contents, media_type="application/json")


async def _readable(request: Request) -> Row:
    key: int = request.path_params["key"]
    row = await tracker_of(request).read(artifacts.by_key, key) if key <= LARGEST_KEY else None
    committed = row is not None and row["state"] == artifacts.COMMITTED
    if row is None or not committed or not may_read(caller_of(request), row["entity"]):
        raise HttpError(404, f"there is no artifact with key {key}")
    return row


def _of_run(connection: sqlite3.Connection, run: int, caller: Caller) -> dict[str, Any]:
    return {
        role: [
            _describe(connection, row, caller)
            for row in _with_role(connection, run, role)
            if may_read(caller, row["entity"])
        ]
        for role in (artifacts.LOGGED, artifacts.USED)
    }


def _users(connection: sqlite3.Connection, artifact: int, caller: Caller) -> list[dict[str, Any]]:
    """The runs that used a version, the newest first; those that the caller may see."""
    keys = artifacts.runs_of(connection, artifact, artifacts.USED)
    users = (runs.by_key(connection, key) for key in keys[: -_MOST_USERS - 1 : -1])
    return [
        {
            "key": row["key"],
            "id": row["id"],
            "name": row["name"],
            "entity": row["entity"],
            "project": row["project_name"],
        }
        for row in users
        if row is not None and may_read(caller, row["entity"])
    ]


def _with_role(connection: sqlite3.Connection, run: int, role: str) -> list[Row]:
    versions: list[Row] = []
    after = 0
    while some := artifacts.of_run(connection, run, role, after=after, limit=_PAGE):
        rows = (artifacts.by_key(connection, each["artifact"]) for each in some)
        versions += [row for row in rows if row is not None]
        after = some[-1]["key"]
    return versions


def _describe(connection: sqlite3.Connection, row: Row, caller: Caller) -> dict[str, Any]:
    maker = None if row["run"] is None else visibility.run(connection, row["run"], readable(caller))
    return {
        **{name: row[name] for name in _COLUMNS},
        "collection": row["collection_name"],
        "project": row["project_name"],
        "tags": json.loads(row["tags"]),
        "aliases": aliases.held(connection, row["collection"], row["key"]),
        "made_by": None if maker is None else maker["id"],
        "used_by": _users(connection, row["key"], caller),
    }
