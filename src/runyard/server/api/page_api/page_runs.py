"""Runs for the page: as columns, what changed of them, renamed, tagged, grouped."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from runyard.server.api.page_api.page_answers import (
    is_known,
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
from runyard.server.http.routes import Endpoint
from runyard.server.listing import run_groups
from runyard.server.listing.field_paths import Field, UnknownField, find_field
from runyard.server.listing.run_listing import read_columns
from runyard.server.people.permissions import RUNS
from runyard.server.runs.runs import change_tags, edit_run
from runyard.server.store.changes import Kind

_SHOWN = (Kind.RUN, Kind.DELETED, Kind.MOVED)
_MOST_FIELDS = 200


async def list_columns(request: Request) -> Response:
    """A project's runs as columns; with `since`, what changed after that revision."""
    project = await readable_project(request)
    tracker = tracker_of(request)
    tag = tag_of(request, tracker.changes.of_project(project["key"], _SHOWN))
    if is_known(request, tag):
        return not_changed(tag)
    given = request.query_params
    since = arguments.number(given.get("since"), "since")
    asked = {part: list(dict.fromkeys(given.getlist(part))) for part in ("config", "summary")}
    if sum(map(len, asked.values())) > _MOST_FIELDS:
        raise HttpError(400, f"more than {_MOST_FIELDS} columns: ask for those that are shown")
    fields = [_field(f"{part}.{name}") for part, names in asked.items() for name in names]
    # Before it is read: what is written meanwhile comes with the next question.
    revision = tracker.changes.revision
    keys, deleted = None, list[int]()
    if since is not None and tracker.changes.knows(since):
        changed = [
            change
            for change in tracker.changes.since(since, _SHOWN)
            if change.project == project["key"]
        ]
        keys = [change.key for change in changed if change.kind is Kind.RUN]
        deleted = [change.key for change in changed if change.kind is not Kind.RUN]
    columns, values = await tracker.read(
        read_columns, tracker.remembered, project["key"], fields, keys
    )
    shown = iter([[plain(value) for value in column] for column in values])
    content = {
        "revision": revision,
        "whole": keys is None,
        "columns": columns,
        **{part: {name: next(shown) for name in names} for part, names in asked.items()},
        # A run that was moved away may have come back.
        "deleted": sorted({*deleted} - {*columns["key"]}),
    }
    return await send_json(request, content, tag)


async def edit(request: Request) -> Response:
    """A run's name, notes, tags or group."""
    row = await own_run(request)
    given = await read_texts(request)
    wanted: dict[str, Any] = {}
    for name in ("name", "notes", "group"):
        if name in given:
            is_cleared = given[name] is None and name != "name"
            wanted[name] = None if is_cleared else arguments.field(given, name, str)
    if "tags" in given:
        wanted["tags"] = arguments.texts(given, "tags")
    strangers = given.keys() - {"name", "notes", "group", "tags"}
    if strangers:
        raise HttpError(400, f"a run's {sorted(strangers)[0][:50]!r} cannot be changed")
    if wanted.get("name") == "":
        raise HttpError(400, "a run needs a name")
    await tracker_of(request).write(edit_run, row["key"], wanted)
    return answer(await tracker_of(request).read(run_json, await readable_run(request)))


async def tag_runs(request: Request) -> Response:
    """Add tags to many runs of a project, or take them off."""
    project = await readable_project(request)
    if not tracker_of(request).accounts.may_write(request.scope["caller"], project["entity"]):
        raise HttpError(403, f"the runs of {project['entity']!r} are not yours to write to")
    given = await read_texts(request)
    keys = _keys(given)
    add = arguments.texts(given, "add") if given.get("add") is not None else []
    remove = arguments.texts(given, "remove") if given.get("remove") is not None else []
    changed = await tracker_of(request).write(change_tags, project["key"], keys or [], add, remove)
    return answer({"changed": changed})


async def group_runs(request: Request) -> Response:
    """Runs with the same values: `by` these fields, or by all of the config `except` those."""
    project = await readable_project(request)
    given = await read_texts(request)
    by = arguments.texts(given, "by") if given.get("by") is not None else None
    apart = arguments.texts(given, "except") if given.get("except") is not None else None
    if (by is None) == (apart is None):
        raise HttpError(400, "give `by` (fields) or `except` (config keys), one of them")
    tracker = tracker_of(request)
    keys = _keys(given)
    if by is not None:
        fields = [_field(name) for name in by]
        groups = await tracker.read(
            run_groups.by_fields, tracker.remembered, project["key"], keys, fields
        )
    else:
        left_out = {name.removeprefix("config.") for name in apart or ()}
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


def _field(name: str) -> Field:
    try:
        return find_field(name)
    except UnknownField as error:
        raise HttpError(400, str(error)) from error


def _keys(given: dict[str, Any]) -> list[int] | None:
    if given.get("runs") is None:
        return None
    keys: list[Any] = arguments.field(given, "runs", list)
    if not all(type(key) is int for key in keys):
        raise HttpError(400, "runs is not a list of keys")
    return keys


ENDPOINTS = [
    Endpoint("GET", "/api/projects/{entity}/{project}/runs", list_columns, RUNS),
    Endpoint("POST", "/api/projects/{entity}/{project}/tags", tag_runs),
    Endpoint("POST", "/api/projects/{entity}/{project}/groups", group_runs, RUNS),
    Endpoint("PATCH", "/api/runs/{key:int}", edit),
]
