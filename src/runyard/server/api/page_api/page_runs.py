"""Runs for the page: as columns, what changed of them, renamed, tagged, grouped."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

from starlette.requests import Request
from starlette.responses import Response

from runyard.server.api.page_api.page_answers import (
    not_changed,
    plain,
    readable_project,
    send_json,
    tag_of,
)
from runyard.server.api.run_api import run_json
from runyard.server.http import arguments
from runyard.server.http.access import own_run, readable_run, tracker_of
from runyard.server.http.answers import HttpError, answer, read_texts
from runyard.server.http.routes import Endpoints
from runyard.server.listing import run_groups
from runyard.server.listing.field_paths import Field, UnknownField, find_field
from runyard.server.listing.run_listing import count_all, read_columns
from runyard.server.listing.run_lists import SHOWN
from runyard.server.people.permissions import RUNS
from runyard.server.runs.runs import change_tags, edit_run, rename_runs
from runyard.server.store.changes import Kind
from runyard.server.store.sql import Row
from runyard.shapes.projects import RunColumns, RunGroup
from runyard.shapes.runs import Run

api = Endpoints("runs")

_MOST_FIELDS = 200


class RunEdit(TypedDict, total=False):
    """What is left out stays."""

    name: str
    notes: str | None
    group: str | None
    tags: list[str]


@dataclass
class TagChange:
    runs: list[int] = field(default_factory=list)
    add: list[str] = field(default_factory=list)
    remove: list[str] = field(default_factory=list)


@dataclass
class Renaming:
    """As many names as runs, in their order."""

    runs: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)


Grouping = TypedDict(
    "Grouping", {"runs": list[int], "by": list[str], "except": list[str]}, total=False
)


@api.get(
    "/api/projects/{entity}/{project}/runs",
    RUNS,
    query={
        "config": list[str],
        "summary": list[str],
        "best": list[str],
        "since": int,
        "limit": int,
        "before": float,
        "key": int,
    },
    answer=RunColumns,
    tag="projects",
)
async def list_columns(request: Request) -> Response:
    """Runs as columns, the newest first; with `since`, those that changed after that revision.

    With `limit` at most so many; the next ones come with the last one's `created_at` as `before`
    and with its `key`.
    """
    project = await readable_project(request)
    tracker = tracker_of(request)
    tag = tag_of(request, tracker.changes.of_project(project["key"], SHOWN))
    if (known := not_changed(request, tag)) is not None:
        return known
    query = request.query_params
    since = arguments.number(request, "since")
    wanted = {part: list(dict.fromkeys(query.getlist(part))) for part in ("config", "summary")}
    metrics = list(dict.fromkeys(query.getlist("best")))
    if sum(map(len, wanted.values())) + len(metrics) > _MOST_FIELDS:
        raise HttpError(400, f"more than {_MOST_FIELDS} columns: ask for those that are shown")
    fields = [_field(f"{part}.{name}") for part, names in wanted.items() for name in names]
    # Before it is read: what is written meanwhile comes with the next question.
    revision = tracker.changes.revision
    keys, deleted = None, list[int]()
    news = None if since is None else tracker.changes.since(since, SHOWN)
    if news is not None:
        changed = [change for change in news if change.project == project["key"]]
        keys = [change.key for change in changed if change.kind is Kind.RUN]
        deleted = [change.key for change in changed if change.kind is not Kind.RUN]
    limit = arguments.number(request, "limit") if keys is None else None
    before = None if limit is None else _before(request)
    columns, values = await tracker.read(
        read_columns, tracker.remembered, project["key"], fields, keys, before, limit
    )
    total = len(columns["key"]) if limit is None else await tracker.read(count_all, project["key"])
    shown = iter([[plain(value) for value in column] for column in values])
    best = await tracker.read(_best_columns, columns["key"], metrics)
    content = {
        "revision": revision,
        "whole": keys is None,
        "total": total,
        "columns": columns,
        **{part: {name: next(shown) for name in names} for part, names in wanted.items()},
        "best": best,
        # A run that was moved away may have come back.
        "deleted": sorted({*deleted} - {*columns["key"]}),
    }
    return await send_json(request, content, tag)


def _best_columns(
    connection: sqlite3.Connection, keys: Sequence[int], metrics: Sequence[str]
) -> dict[str, list[Any]]:
    """What trials count by in their sweeps; None for runs of no sweep."""
    if not metrics:
        return {}
    rows = connection.execute(
        "SELECT run, measured FROM trials WHERE measured IS NOT NULL "
        "AND run IN (SELECT value FROM json_each(?))",
        (json.dumps(list(keys)),),
    )
    measured = {row["run"]: json.loads(row["measured"]) for row in rows}
    return {
        metric: [plain(measured.get(key, {}).get(metric)) for key in keys] for metric in metrics
    }


@api.patch("/api/runs/{key:int}", body=RunEdit, answer=Run)
async def edit(request: Request) -> Response:
    """Change a name, notes, tags or a group."""
    row = await own_run(request)
    body = await read_texts(request)
    changes = arguments.checked(body, RunEdit, null=True)
    if strangers := sorted(body.keys() - changes.keys()):
        raise HttpError(400, f"a run's {strangers[0][:50]!r} cannot be changed")
    if changes.get("name") == "":
        raise HttpError(400, "a run needs a name")
    await tracker_of(request).write(edit_run, row["key"], changes)
    return answer(await tracker_of(request).read(run_json, await readable_run(request)))


@api.post(
    "/api/projects/{entity}/{project}/tags", body=TagChange, answer={"changed": int}, tag="projects"
)
async def tag_runs(request: Request) -> Response:
    """Add tags to runs, or take them off."""
    project = await _own_project(request)
    body = await arguments.read(request, TagChange)
    changed = await tracker_of(request).write(
        change_tags, project["key"], body.runs, body.add, body.remove
    )
    return answer({"changed": changed})


@api.post(
    "/api/projects/{entity}/{project}/rename",
    body=Renaming,
    answer={"changed": int},
    tag="projects",
)
async def rename_many(request: Request) -> Response:
    """Give runs other names, all at once."""
    project = await _own_project(request)
    body = await arguments.read(request, Renaming)
    if len(body.runs) != len(body.names) or not all(body.names):
        raise HttpError(400, "give as many `names` as `runs`; a run needs a name")
    names = dict(zip(body.runs, body.names, strict=True))
    changed = await tracker_of(request).write(rename_runs, project["key"], names)
    return answer({"changed": changed})


async def _own_project(request: Request) -> Row:
    project = await readable_project(request)
    if not tracker_of(request).accounts.may_write(request.scope["caller"], project["entity"]):
        raise HttpError(403, f"the runs of {project['entity']!r} are not yours to write to")
    return project


@api.post(
    "/api/projects/{entity}/{project}/groups",
    RUNS,
    body=Grouping,
    answer={"groups": list[RunGroup]},
    tag="projects",
)
async def group_runs(request: Request) -> Response:
    """Runs with the same values: `by` these fields, or by the config `except` these keys."""
    project = await readable_project(request)
    body = await arguments.read(request, Grouping)
    if ("by" in body) == ("except" in body):
        raise HttpError(400, "give `by` (fields) or `except` (config keys), one of them")
    tracker = tracker_of(request)
    keys = body.get("runs")
    if "by" in body:
        fields = [_field(name) for name in body["by"]]
        groups = await tracker.read(
            run_groups.by_fields, tracker.remembered, project["key"], keys, fields
        )
    else:
        left_out = {name.removeprefix("config.") for name in body["except"]}
        groups = await tracker.read(run_groups.by_config, project["key"], keys, left_out)
    return await send_json(
        request,
        {
            "groups": [
                {
                    "label": group.label,
                    "values": {name: plain(value) for name, value in group.values.items()},
                    "runs": group.runs,
                }
                for group in groups
            ]
        },
    )


def _before(request: Request) -> tuple[float, int] | None:
    """Where the last slice ended."""
    time, key = request.query_params.get("before"), arguments.number(request, "key")
    if time is None or key is None:
        return None
    try:
        return float(time), key
    except ValueError as error:
        raise HttpError(400, f"before is not a time: {time[:50]!r}") from error


def _field(name: str) -> Field:
    try:
        return find_field(name)
    except UnknownField as error:
        raise HttpError(400, str(error)) from error
