"""Reports: kept views with notes, each with a link of its own."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from runyard.server.api.page_api.page_answers import readable_project
from runyard.server.http import arguments
from runyard.server.http.access import caller_of, must_write, tracker_of
from runyard.server.http.answers import HttpError, answer
from runyard.server.http.routes import Endpoints
from runyard.server.people.permissions import may_read
from runyard.server.runs import saved_views
from runyard.server.store.sql import Row
from runyard.shapes.projects import Report, ReportHead

api = Endpoints("reports")

_LONGEST = {"title": 300, "notes": 1_000_000}
_LARGEST_VIEW = 2_000_000


@dataclass
class ReportContent:
    title: str | None = None
    notes: str | None = None
    view: dict[str, Any] | None = None
    revision: int | None = None


@api.get("/api/projects/{entity}/{project}/reports", answer=list[ReportHead], tag="projects")
async def list_reports(request: Request) -> Response:
    """Kept views, without their contents."""
    project = await readable_project(request)
    rows = await tracker_of(request).read(saved_views.of_project, project["key"])
    return answer([_without_view(row) for row in rows])


@api.post(
    "/api/projects/{entity}/{project}/reports", body=ReportContent, answer=Report, tag="projects"
)
async def create_report(request: Request) -> Response:
    """Keep a view."""
    project = await readable_project(request)
    must_write(request, caller_of(request), project["entity"])
    body = await arguments.read(request, ReportContent)
    content = {"notes": "", "view": {}, **_content(body)}
    if not content.get("title"):
        raise HttpError(400, "title is missing: what is the report called?")
    row = await tracker_of(request).write(
        saved_views.create, project["key"], caller_of(request).key, content, time.time()
    )
    return answer(_whole(row))


@api.get("/api/reports/{id}", answer=Report)
async def show_report(request: Request) -> Response:
    """A kept view with its notes."""
    return answer(_whole(await _readable(request)))


@api.put("/api/reports/{id}", body=ReportContent, answer=Report)
async def change_report(request: Request) -> Response:
    """Save it; with `revision`, only if nobody else has since (409)."""
    row = await _own(request)
    body = await arguments.read(request, ReportContent)
    try:
        await tracker_of(request).write(
            saved_views.change, row["key"], body.revision, _content(body), time.time()
        )
    except saved_views.Outdated as error:
        raise HttpError(409, str(error)) from error
    return answer(_whole(await _readable(request)))


@api.delete("/api/reports/{id}", answer={"deleted": str})
async def delete_report(request: Request) -> Response:
    """Forget it."""
    row = await _own(request)
    await tracker_of(request).write(saved_views.delete, row["key"])
    return answer({"deleted": row["id"]})


def _content(body: ReportContent) -> dict[str, Any]:
    fields = {"title": body.title, "notes": body.notes, "view": body.view}
    content = {name: value for name, value in fields.items() if value is not None}
    for name, longest in _LONGEST.items():
        if len(content.get(name, "")) > longest:
            raise HttpError(413, f"{name} is longer than {longest} characters")
    if len(json.dumps(body.view)) > _LARGEST_VIEW:
        raise HttpError(413, "the view is too large to be kept")
    return content


async def _readable(request: Request) -> Row:
    name = request.path_params["id"]
    row = await tracker_of(request).read(saved_views.by_id, name)
    if row is None or not may_read(caller_of(request), row["entity"]):
        raise HttpError(404, f"there is no report {name[:50]!r}")
    return row


async def _own(request: Request) -> Row:
    row = await _readable(request)
    must_write(request, caller_of(request), row["entity"])
    return row


def _without_view(row: Row) -> dict[str, Any]:
    columns = ("id", "title", "notes", "entity", "revision", "created_at", "updated_at")
    return {
        **{name: row[name] for name in columns},
        "project": row["project_name"],
        "user": row["user_name"],
    }


def _whole(row: Row) -> dict[str, Any]:
    return {**_without_view(row), "view": json.loads(row["view"])}
