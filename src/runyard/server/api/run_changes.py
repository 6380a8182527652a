"""Changes of many runs at once: to the trash and back, to another project, stopped."""

from __future__ import annotations

import time
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from runyard.server.api.page_api.page_answers import readable_project
from runyard.server.http import arguments
from runyard.server.http.access import caller_of, must_write, own_run, tracker_of
from runyard.server.http.answers import HttpError, answer
from runyard.server.http.routes import Endpoints
from runyard.server.people.permissions import RUNS, readable
from runyard.server.store.names import check_project
from runyard.server.store.sql import Row
from runyard.server.sweeps.ledger import endings
from runyard.server.tracking import moving, trash
from runyard.shapes.runs import ChangedRuns, TrashedRun

api = Endpoints("runs")

# What one request may change: a page selects fewer, and a mistake has an end.
_MOST = 5_000


@dataclass
class SomeRuns:
    """By their keys."""

    runs: list[int]


@dataclass
class RunsToMove(SomeRuns):
    to: str


@api.delete("/api/runs/{key:int}", query={"now": int, "artifacts": int}, answer={"deleted": str})
async def delete_run(request: Request) -> Response:
    """Put a run into the trash for 30 days; with `now=1`, delete it for good at once; with
    `artifacts=1` also, at once, the artifacts that it logged.
    """
    row = await own_run(request)
    with_artifacts = arguments.number(request, "artifacts") == 1
    tracker, caller = tracker_of(request), caller_of(request)
    if arguments.number(request, "now") == 1:
        await tracker.delete_run(caller, row["key"], with_artifacts=with_artifacts)
    else:
        await tracker.trash_runs(caller, [row["key"]], with_artifacts=with_artifacts)
    return answer({"deleted": row["id"]})


@api.post("/api/projects/{entity}/{project}/trash", body=SomeRuns, answer=ChangedRuns)
async def trash_runs(request: Request) -> Response:
    """Put runs into the trash."""
    _, keys = await _project_and_keys(request, await arguments.read(request, SomeRuns))
    return answer(_changed(await tracker_of(request).trash_runs(caller_of(request), keys)))


@api.get("/api/projects/{entity}/{project}/trash", RUNS, answer=list[TrashedRun])
@api.get("/api/trash", RUNS, answer=list[TrashedRun])
async def list_trash(request: Request) -> Response:
    """What lies in the trash, of a project or of all: who deleted it, and when it goes for good."""
    tracker, entities = tracker_of(request), readable(caller_of(request))
    project = (await readable_project(request))["key"] if request.path_params else None
    return answer(await tracker.read(trash.of_entities_in, entities, project))


@api.post("/api/trash/restore", body=SomeRuns, answer=ChangedRuns)
async def restore_runs(request: Request) -> Response:
    """Put runs of the trash back where they were."""
    keys = await _own_trash(request)
    try:
        entities = readable(caller_of(request))
        rows = await tracker_of(request).write(trash.restore, keys, entities)
    except trash.Occupied as error:
        raise HttpError(409, str(error)) from error
    return answer(_changed(rows))


@api.post("/api/trash/delete", body=SomeRuns, answer={"runs": list[int]})
async def delete_trash(request: Request) -> Response:
    """Delete runs of the trash for good, before their 30 days are over."""
    keys = await _own_trash(request)
    for key in keys:
        await tracker_of(request).delete_for_good(key)
    return answer({"runs": keys})


@api.post("/api/projects/{entity}/{project}/move", body=RunsToMove, answer=ChangedRuns)
async def move_runs(request: Request) -> Response:
    """Move runs that have ended to another project of the entity; where an id is taken there, or
    one of them is at work, nothing moves.
    """
    body = await arguments.read(request, RunsToMove)
    project, keys = await _project_and_keys(request, body)
    try:
        check_project(body.to)
        rows = await tracker_of(request).write(
            moving.move, project["key"], keys, project["entity"], body.to, time.time()
        )
    except ValueError as error:
        is_conflict = isinstance(error, moving.Taken | moving.AtWork)
        raise HttpError(409 if is_conflict else 400, str(error)) from error
    return answer(_changed(rows))


@api.post("/api/projects/{entity}/{project}/stop", body=SomeRuns, answer=ChangedRuns)
async def stop_runs(request: Request) -> Response:
    """Ask runs to stop."""
    project, keys = await _project_and_keys(request, await arguments.read(request, SomeRuns))
    tracker = tracker_of(request)
    rows = await tracker.read(moving.of_project, project["key"], keys)
    for row in rows:
        await tracker.write(endings.ask_to_stop, row["key"], time.time())
    tracker.sweeps.quiet_periods.clear()  # Agents, if they have some, are to hear of it.
    return answer(_changed(rows))


async def _project_and_keys(request: Request, body: SomeRuns) -> tuple[Row, list[int]]:
    """The runs that are named, if they are the project's."""
    project = await readable_project(request)
    must_write(request, caller_of(request), project["entity"])
    rows = await tracker_of(request).read(moving.of_project, project["key"], _keys(body))
    return project, [row["key"] for row in rows]


async def _own_trash(request: Request) -> list[int]:
    keys = set(_keys(await arguments.read(request, SomeRuns)))
    tracker = tracker_of(request)
    listed = await tracker.read(trash.of_entities_in, readable(caller_of(request)))
    rows = [row for row in listed if row["key"] in keys]
    for entity in {row["entity"] for row in rows}:
        must_write(request, caller_of(request), entity)
    if not rows:
        raise HttpError(404, "none of these runs is in the trash")
    return [row["key"] for row in rows]


def _keys(body: SomeRuns) -> list[int]:
    if len(body.runs) > _MOST:
        raise HttpError(400, f"more than {_MOST} runs at once")
    return body.runs


def _changed(rows: list[Row]) -> ChangedRuns:
    return {"runs": [row["key"] for row in rows], "names": [row["name"] for row in rows]}
