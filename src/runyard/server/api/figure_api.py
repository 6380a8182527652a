"""runyard's own API of figures: what kinds of experiments need, and what was expected of sweeps."""

from __future__ import annotations

import json
import sqlite3
import time
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from runyard.server.http import arguments
from runyard.server.http.access import caller_of, own_sweep, readable_sweep, tracker_of
from runyard.server.http.answers import HttpError, answer, read_texts
from runyard.server.http.routes import Endpoint
from runyard.server.jobs import figures
from runyard.server.people.permissions import may_read
from runyard.server.runs import projects
from runyard.server.store.names import BadName, check_project

_LONGEST_NAME = 300
_LARGEST = 100_000


async def add_figures(request: Request) -> Response:
    given = await read_texts(request)
    caller, tracker = caller_of(request), tracker_of(request)
    entity = given.get("entity") or caller.name
    project = arguments.field(given, "project", str)
    try:
        check_project(entity)
        check_project(project)
    except BadName as error:
        raise HttpError(400, str(error)) from error
    if not tracker.accounts.may_write(caller, entity):
        raise HttpError(403, f"{entity!r} is not an entity that you may write to")
    kind, hardware = _name(given, "kind"), _name(given, "hardware", empty=True)
    told = _object(given, "figures")
    now = time.time()

    def keep(connection: sqlite3.Connection) -> int:
        row, _ = projects.ensure(connection, entity, project, now)
        return figures.add(connection, row["key"], caller.key, kind, hardware, told, now)

    return answer({"key": await tracker.write(keep)})


async def list_figures(request: Request) -> Response:
    """Of a project, or of one kind in it: then also what its sweeps took."""
    query, caller = request.query_params, caller_of(request)
    entity, project = query.get("entity") or caller.name, query.get("project") or ""
    kind = query.get("kind")
    if not may_read(caller, entity):
        return answer({"figures": [], "sweeps": []})
    return answer(await tracker_of(request).read(_known, entity, project, kind))


async def show_estimate(request: Request) -> Response:
    row = await readable_sweep(request)
    found = await tracker_of(request).read(figures.estimate_of, row["key"])
    if found is None:
        raise HttpError(404, f"nothing was estimated for sweep {row['id']}")
    return answer(found)


async def keep_estimate(request: Request) -> Response:
    row = await own_sweep(request)
    given = await read_texts(request)
    kind, told = _name(given, "kind"), _object(given, "estimate")
    tracker = tracker_of(request)
    await tracker.write(figures.estimate, row["key"], kind, told)
    return answer(await tracker.read(figures.estimate_of, row["key"]))


def _known(
    connection: sqlite3.Connection, entity: str, project: str, kind: str | None
) -> dict[str, Any]:
    row = projects.by_path(connection, entity, project)
    if row is None:
        return {"figures": [], "sweeps": []}
    found = [
        {
            "kind": one["kind"],
            "hardware": one["hardware"],
            "user": one["user_name"],
            "made_at": one["made_at"],
            "figures": json.loads(one["figures"]),
        }
        for one in figures.of_project(connection, row["key"], kind)
    ]
    ran = [] if kind is None else figures.sweeps_of_kind(connection, row["key"], kind)
    return {"figures": found, "sweeps": ran}


def _name(given: dict[str, Any], name: str, *, empty: bool = False) -> str:
    if empty and not given.get(name):
        return ""
    found: str = arguments.field(given, name, str)
    if not found or len(found) > _LONGEST_NAME or not found.isprintable():
        raise HttpError(400, f"{name}: a text of at most {_LONGEST_NAME} letters")
    return found


def _object(given: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = arguments.field(given, name, dict)
    if len(json.dumps(found)) > _LARGEST:
        raise HttpError(413, f"{name} is larger than {_LARGEST} letters")
    return found


ENDPOINTS = [
    Endpoint("GET", "/api/figures", list_figures),
    Endpoint("POST", "/api/figures", add_figures),
    Endpoint("GET", "/api/sweeps/{key:int}/estimate", show_estimate),
    Endpoint("POST", "/api/sweeps/{key:int}/estimate", keep_estimate),
]
