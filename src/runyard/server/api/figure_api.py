"""runyard's own API of figures: what kinds of experiments need, and what was expected of sweeps."""

from __future__ import annotations

import json
import sqlite3
import time
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from runyard.server.http import arguments
from runyard.server.http.access import caller_of, must_write, own_sweep, readable_sweep, tracker_of
from runyard.server.http.answers import HttpError, answer
from runyard.server.http.routes import Endpoints
from runyard.server.jobs import figures
from runyard.server.people.permissions import may_read
from runyard.server.runs import projects
from runyard.server.store.names import BadName, check_project
from runyard.shapes.jobs import Expected, Known

api = Endpoints("figures")

_LONGEST_NAME = 300
_LARGEST = 100_000


@dataclass
class NewFigures:
    project: str
    kind: str
    figures: dict[str, Any]
    hardware: str = ""
    entity: str | None = None


@dataclass
class NewEstimate:
    kind: str
    estimate: dict[str, Any]


@api.post("/api/figures", body=NewFigures, answer={"key": int})
async def add_figures(request: Request) -> Response:
    """Keep a measurement."""
    body = await arguments.read(request, NewFigures)
    caller, tracker = caller_of(request), tracker_of(request)
    entity = body.entity or caller.name
    try:
        check_project(entity)
        check_project(body.project)
    except BadName as error:
        raise HttpError(400, str(error)) from error
    must_write(request, caller, entity)
    _check_name("kind", body.kind)
    if body.hardware:
        _check_name("hardware", body.hardware)
    _check_size("figures", body.figures)
    now = time.time()

    def keep(connection: sqlite3.Connection) -> int:
        row, _ = projects.ensure(connection, entity, body.project, now)
        return figures.add(
            connection, row["key"], caller.key, body.kind, body.hardware, body.figures, now
        )

    return answer({"key": await tracker.write(keep)})


@api.get("/api/figures", query={"project": str, "entity": str, "kind": str}, answer=Known)
async def list_figures(request: Request) -> Response:
    """What kinds of experiments of a project need, as measured; of one `kind`, also what its
    sweeps were expected to take, and took.
    """
    query, caller = request.query_params, caller_of(request)
    entity, project = query.get("entity") or caller.name, query.get("project") or ""
    kind = query.get("kind")
    if not may_read(caller, entity):
        return answer({"figures": [], "sweeps": []})
    return answer(await tracker_of(request).read(_known, entity, project, kind))


@api.get("/api/sweeps/{key:int}/estimate", answer=Expected)
async def show_estimate(request: Request) -> Response:
    """What was expected of a sweep, and what its trials took."""
    row = await readable_sweep(request)
    estimate = await tracker_of(request).read(figures.estimate_of, row["key"])
    if estimate is None:
        raise HttpError(404, f"nothing was estimated for sweep {row['id']}")
    return answer(estimate)


@api.post("/api/sweeps/{key:int}/estimate", body=NewEstimate, answer=Expected)
async def keep_estimate(request: Request) -> Response:
    """Keep what is expected of a sweep."""
    row = await own_sweep(request)
    body = await arguments.read(request, NewEstimate)
    _check_name("kind", body.kind)
    _check_size("estimate", body.estimate)
    tracker = tracker_of(request)
    await tracker.write(figures.estimate, row["key"], body.kind, body.estimate)
    return answer(await tracker.read(figures.estimate_of, row["key"]))


def _known(
    connection: sqlite3.Connection, entity: str, project: str, kind: str | None
) -> dict[str, Any]:
    row = projects.by_path(connection, entity, project)
    if row is None:
        return {"figures": [], "sweeps": []}
    return {
        "figures": [
            {
                "kind": measured["kind"],
                "hardware": measured["hardware"],
                "user": measured["user_name"],
                "made_at": measured["made_at"],
                "figures": json.loads(measured["figures"]),
            }
            for measured in figures.of_project(connection, row["key"], kind)
        ],
        "sweeps": [] if kind is None else figures.sweeps_of_kind(connection, row["key"], kind),
    }


def _check_name(name: str, text: str) -> None:
    if not text or len(text) > _LONGEST_NAME or not text.isprintable():
        raise HttpError(400, f"{name}: a text of at most {_LONGEST_NAME} letters")


def _check_size(name: str, content: dict[str, Any]) -> None:
    if len(json.dumps(content)) > _LARGEST:
        raise HttpError(413, f"{name} is larger than {_LARGEST} letters")
