"""Reports: kept views with notes, each with a link of its own."""

from __future__ import annotations

import json
import time
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from runyard.server.api.page_api.page_answers import readable_project
from runyard.server.http import arguments
from runyard.server.http.access import caller_of, must_write, tracker_of
from runyard.server.http.answers import HttpError, answer, read_json, whole_texts
from runyard.server.http.routes import Endpoint
from runyard.server.people.permissions import may_read
from runyard.server.runs import saved_views
from runyard.server.store.sql import Row

_LONGEST = {"title": 300, "notes": 1_000_000}
_LARGEST_VIEW = 2_000_000


async def list_reports(request: Request) -> Response:
    """A project's reports, without their views."""
    project = await readable_project(request)
    rows = await tracker_of(request).read(saved_views.of_project, project["key"])
    return answer([_without_view(row) for row in rows])


async def create_report(request: Request) -> Response:
    """Keep a view."""
    project = await readable_project(request)
    must_write(request, caller_of(request), project["entity"])
    content = {"notes": "", "view": {}, **_content(await read_json(request))}
    if not content.get("title"):
        raise HttpError(400, "title is missing: what is the report called?")
    row = await tracker_of(request).write(
        saved_views.create, project["key"], caller_of(request).key, content, time.time()
    )
    return answer(_whole(row))


async def show_report(request: Request) -> Response:
    """A report with its view."""
    return answer(_whole(await _readable(request)))


async def change_report(request: Request) -> Response:
    """Title, notes or view; with `revision`, only if nobody else has saved it since."""
    row = await _own(request)
    given = await read_json(request)
    revision = None if given.get("revision") is None else arguments.field(given, "revision", int)
    try:
        await tracker_of(request).write(
            saved_views.change, row["key"], revision, _content(given), time.time()
        )
    except saved_views.Outdated as error:
        raise HttpError(409, str(error)) from error
    return answer(_whole(await _readable(request)))


async def delete_report(request: Request) -> Response:
    """Forget a report, for good."""
    row = await _own(request)
    await tracker_of(request).write(saved_views.delete, row["key"])
    return answer({"deleted": row["id"]})


def _content(given: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, longest in _LONGEST.items():
        if given.get(name) is not None:
            found[name] = whole_texts(arguments.field(given, name, str))
            if len(found[name]) > longest:
                raise HttpError(413, f"{name} is longer than {longest} characters")
    if given.get("view") is not None:
        found["view"] = whole_texts(arguments.field(given, "view", dict))
        if len(json.dumps(found["view"])) > _LARGEST_VIEW:
            raise HttpError(413, "the view is too large to be kept")
    return found


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
    told = ("id", "title", "notes", "entity", "revision", "created_at", "updated_at")
    return {
        **{name: row[name] for name in told},
        "project": row["project_name"],
        "user": row["user_name"],
    }


def _whole(row: Row) -> dict[str, Any]:
    return {**_without_view(row), "view": json.loads(row["view"])}


ENDPOINTS = [
    Endpoint("GET", "/api/projects/{entity}/{project}/reports", list_reports),
    Endpoint("POST", "/api/projects/{entity}/{project}/reports", create_report),
    Endpoint("GET", "/api/reports/{id}", show_report),
    Endpoint("PUT", "/api/reports/{id}", change_report),
    Endpoint("DELETE", "/api/reports/{id}", delete_report),
]
