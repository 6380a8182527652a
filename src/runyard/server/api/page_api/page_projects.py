"""The list of projects, and under which names their runs have anything."""

from __future__ import annotations

import sqlite3
import time
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from runyard.server.api.page_api.page_answers import (
    not_changed,
    plain,
    readable_project,
    send_json,
    tag_of,
)
from runyard.server.history.reading.project_overview import ProjectOverviews
from runyard.server.http.access import caller_of, tracker_of
from runyard.server.http.routes import Endpoints
from runyard.server.people.permissions import RUNS, Entities, readable
from runyard.server.runs.runs import NOT_TRASH
from runyard.server.store.changes import Kind
from runyard.server.sweeps.policy.rules import Rules
from runyard.shapes.projects import FieldNames, Projects

api = Endpoints("projects")

_LISTED = (Kind.PROJECT, Kind.RUN, Kind.DELETED, Kind.MOVED, Kind.SWEEP)
_NAMED = (Kind.RUN, Kind.DELETED, Kind.MOVED, Kind.HISTORY, Kind.SWEEP)


@api.get("/api/projects", RUNS, answer=Projects)
async def list_projects(request: Request) -> Response:
    """Projects, the one with the latest activity first."""
    tracker, caller = tracker_of(request), caller_of(request)
    now = time.time()
    # The days of the activity go on without any change.
    tag = tag_of(request, tracker.changes.of_all(_LISTED) + int(now // 86_400))
    if (known := not_changed(request, tag)) is not None:
        return known
    revision = tracker.changes.revision
    projects = await tracker.read(
        _projects, readable(caller), tracker.project_overviews, revision, now
    )
    return await send_json(request, {"revision": revision, "projects": projects}, tag)


@api.get("/api/projects/{entity}/{project}/keys", RUNS, answer=FieldNames)
async def list_keys(request: Request) -> Response:
    """Under which names runs have config, summary, metrics and media."""
    project = await readable_project(request)
    tracker = tracker_of(request)
    tag = tag_of(request, tracker.changes.of_project(project["key"], _NAMED))
    if (known := not_changed(request, tag)) is not None:
        return known
    revision = tracker.changes.revision
    keys = await tracker.read(tracker.project_keys.read, project["key"], revision)
    ranked = await tracker.read(_ranked_metrics, project["key"])
    return await send_json(request, {"revision": revision, **keys, "ranked": ranked}, tag)


def _ranked_metrics(connection: sqlite3.Connection, project: int) -> dict[str, str]:
    """The metrics that sweeps of a project rank by, those of the newest first, with their goals."""
    rows = connection.execute(
        "SELECT rules FROM sweeps WHERE project = ? ORDER BY key DESC", (project,)
    )
    ranked: dict[str, str] = {}
    for row in rows:
        for aim in Rules.read(row["rules"]).aims:
            ranked.setdefault(aim.name, "maximize" if aim.maximize else "minimize")
    return ranked


def _projects(
    connection: sqlite3.Connection,
    entities: Entities | None,
    overviews: ProjectOverviews,
    revision: int,
    now: float,
) -> list[dict[str, Any]]:
    rows = connection.execute(
        "SELECT key, entity, name, created_at, "
        "(SELECT count(*) FROM sweeps WHERE sweeps.project = projects.key) AS sweeps, "
        "(SELECT count(*) FROM reports WHERE reports.project = projects.key) AS reports "
        f"FROM projects WHERE {NOT_TRASH}"
    ).fetchall()
    projects = []
    for row in rows:
        if entities is not None and row["entity"] not in entities:
            continue
        overview = overviews.read(connection, row["key"], revision, now)
        projects.append(
            {
                "entity": row["entity"],
                "name": row["name"],
                "created_at": row["created_at"],
                "sweeps": row["sweeps"],
                "reports": row["reports"],
                "runs": sum(overview.counts.values()),
                "running": overview.counts.get("running", 0),
                "counts": overview.counts,
                "last_at": max(overview.last_at, row["created_at"]),
                "activity": overview.activity,
                "metric": overview.metric,
                "spark": [plain(value) for value in overview.spark],
            }
        )
    return sorted(projects, key=lambda project: -project["last_at"])
