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
from runyard.server.history.history import HISTORY
from runyard.server.history.reading.curves import read_curve
from runyard.server.history.reading.defined_metrics import of_metrics, read_defined
from runyard.server.history.reading.dotted_names import names_of_run
from runyard.server.http.access import caller_of, tracker_of
from runyard.server.http.routes import Endpoints
from runyard.server.people.permissions import RUNS, Entities, readable
from runyard.server.runs.runs import NOT_TRASH
from runyard.server.store.changes import Kind
from runyard.server.store.json_text import parse
from runyard.server.sweeps.policy.rules import Rules
from runyard.shapes.projects import FieldNames, Projects

api = Endpoints("projects")

_LISTED = (Kind.PROJECT, Kind.RUN, Kind.DELETED, Kind.MOVED, Kind.SWEEP)
_NAMED = (Kind.RUN, Kind.DELETED, Kind.MOVED, Kind.HISTORY, Kind.SWEEP)
_DAYS = 30
_SPARK = 48


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
    projects = await tracker.read(_projects, readable(caller), now)
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
    connection: sqlite3.Connection, entities: Entities | None, now: float
) -> list[dict[str, Any]]:
    rows = connection.execute(
        "SELECT key, entity, name, created_at, "
        "(SELECT count(*) FROM sweeps WHERE sweeps.project = projects.key) AS sweeps, "
        "(SELECT count(*) FROM reports WHERE reports.project = projects.key) AS reports "
        f"FROM projects WHERE {NOT_TRASH}"
    ).fetchall()
    counts: dict[int, dict[str, int]] = {}
    last: dict[int, float] = {}
    for row in connection.execute(
        "SELECT project, state, count(*) AS count, "
        "max(max(created_at, coalesce(heartbeat_at, 0), coalesce(ended_at, 0))) AS last_at "
        "FROM runs GROUP BY project, state"
    ):
        counts.setdefault(row["project"], {})[row["state"]] = row["count"]
        last[row["project"]] = max(last.get(row["project"], 0.0), row["last_at"])
    activity = _activity(connection, now)
    projects = [
        {
            "entity": row["entity"],
            "name": row["name"],
            "created_at": row["created_at"],
            "sweeps": row["sweeps"],
            "reports": row["reports"],
            "runs": sum(counts.get(row["key"], {}).values()),
            "running": counts.get(row["key"], {}).get("running", 0),
            "counts": counts.get(row["key"], {}),
            "last_at": max(last.get(row["key"], 0.0), row["created_at"]),
            "activity": activity.get(row["key"], [0] * _DAYS),
            **_spark(connection, row["key"]),
        }
        for row in rows
        if entities is None or row["entity"] in entities
    ]
    return sorted(projects, key=lambda project: -project["last_at"])


def _spark(connection: sqlite3.Connection, project: int) -> dict[str, Any]:
    """A metric of the newest run that logged any, thinned out to a thumbnail."""
    newest = connection.execute(
        "SELECT key, config FROM runs WHERE project = ? ORDER BY created_at DESC LIMIT 5",
        (project,),
    ).fetchall()
    for row in newest:
        keys = names_of_run(connection, row["key"], HISTORY)
        defined = of_metrics(read_defined(parse(row["config"])), keys)
        hidden = {name for name, metric in defined.items() if metric["hidden"]}
        names = sorted(name for name in keys if not name.startswith("_") and name not in hidden)
        for name in sorted(names, key=_dullness):
            curve = read_curve(connection, row["key"], HISTORY, keys[name], _SPARK)
            if curve is not None and len(curve.last) > 1:
                return {"metric": name, "spark": [plain(value) for value in curve.last.tolist()]}
    return {"metric": None, "spark": []}


def _dullness(name: str) -> int:
    """What people look at first comes first."""
    words = ("loss", "acc", "reward", "score", "error")
    return next((place for place, word in enumerate(words) if word in name.lower()), len(words))


def _activity(connection: sqlite3.Connection, now: float) -> dict[int, list[int]]:
    """How many runs began on each of the last days, today's at the end."""
    days_of: dict[int, list[int]] = {}
    begin = now - _DAYS * 86_400
    for row in connection.execute(
        "SELECT project, CAST((created_at - ?) / 86400 AS INTEGER) AS day, count(*) AS count "
        "FROM runs WHERE created_at >= ? GROUP BY project, day",
        (begin, begin),
    ):
        days = days_of.setdefault(row["project"], [0] * _DAYS)
        days[min(row["day"], _DAYS - 1)] += row["count"]
    return days_of
