"""runyard's own API of runs: announced, shown, stopped, deleted; what their programs print."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from runyard.server.history import archives
from runyard.server.history.history import HISTORY, count_rows
from runyard.server.history.reading.dotted_names import names_of_run
from runyard.server.history.reading.metrics import read_metrics
from runyard.server.http import arguments
from runyard.server.http.access import (
    caller_of,
    meant,
    must_write,
    own_run,
    readable_run,
    tracker_of,
)
from runyard.server.http.answers import (
    LARGEST_BODY,
    HttpError,
    answer,
    read_body,
    strict_text,
)
from runyard.server.http.routes import Endpoints
from runyard.server.jobs import jobs
from runyard.server.people.permissions import RUNS, readable
from runyard.server.processes import attempts
from runyard.server.processes.attempts import usage_json
from runyard.server.processes.consoles import read_page
from runyard.server.runs import alerts, runs
from runyard.server.store import json_text
from runyard.server.store.changes import Kind
from runyard.server.store.database import LARGEST_KEY
from runyard.server.store.json_text import is_odd
from runyard.server.store.names import BadName, check_project, check_run_id
from runyard.server.store.sql import Row
from runyard.server.sweeps.ledger import endings, leases
from runyard.server.tracker import Tracker
from runyard.shapes.runs import (
    ArchiveDetail,
    Console,
    NewRun,
    Received,
    Run,
    RunDetail,
    Series,
)

api = Endpoints("runs")

# What can change a run's console, or end it.
_PRINTED = (Kind.CONSOLE, Kind.RUN, Kind.DELETED)
# So many are read and encoded within some hundredths of a second, and are a megabyte or less.
_RUNS_AT_ONCE = 200


@dataclass
class NewAttempt:
    token: str
    host: str
    pid: int


@dataclass
class AttemptEnd:
    exit_code: int
    ended_at: float


@api.get(
    "/api/runs",
    RUNS,
    query={"project": str, "state": str, "sweep": int, "alone": int, "limit": int},
    answer=list[Run],
)
async def list_runs(request: Request) -> Response:
    """Runs, the newest first."""
    query = request.query_params
    tracker = tracker_of(request)
    keys = await tracker.read(
        runs.newest,
        query.get("project"),
        query.get("state"),
        arguments.number(request, "limit"),
        readable(caller_of(request)),
        alone=query.get("alone") == "1",
        sweep=arguments.number(request, "sweep"),
    )
    first = await tracker.read(_runs_text, keys[:_RUNS_AT_ONCE])
    if len(keys) <= _RUNS_AT_ONCE:
        return Response(b"[%b]" % first, media_type="application/json")
    return StreamingResponse(_list_of_runs(tracker, first, keys), media_type="application/json")


@api.get("/api/run", RUNS, query={"name": str}, answer=RunDetail)
async def find_run(request: Request) -> Response:
    """One run by what a person types: an id, its beginning, a name, PROJECT/NAME,
    ENTITY/PROJECT/ID.
    """
    row = await meant(request, "run", runs.by_words, readable(caller_of(request)))
    return answer(await tracker_of(request).read(_detail, row))


@api.post("/api/runs", RUNS, body=NewRun, answer=Run)
async def create_run(request: Request) -> Response:
    """Announce a run before its program starts."""
    new = await arguments.read(request, NewRun)
    caller = caller_of(request)
    entity = new.get("entity") or caller.name
    try:
        check_run_id(new["id"])
        check_project(new["project"])
        check_project(entity)
    except BadName as error:
        raise HttpError(400, str(error)) from error
    if not new["command"]:
        raise HttpError(400, "command is missing")
    must_write(request, caller, entity)
    row = await tracker_of(request).write(
        runs.create_launched,
        new,
        entity=entity,
        user=caller.key,
        now=time.time(),
    )
    return answer(await tracker_of(request).read(run_json, row))


@api.post("/api/runs/{key:int}/stop", answer=Run)
async def stop_run(request: Request) -> Response:
    """Ask a run to stop."""
    row = await own_run(request)
    await tracker_of(request).write(endings.ask_to_stop, row["key"], time.time())
    tracker_of(request).sweeps.quiet_periods.clear()  # Its agent, if it has one, is to hear of it.
    return answer(await tracker_of(request).read(run_json, await readable_run(request)))


@api.get("/api/runs/{key:int}/archives", RUNS, answer=list[ArchiveDetail])
async def list_archives(request: Request) -> Response:
    """What was overwritten or rewound."""
    row = await readable_run(request)
    details: list[ArchiveDetail] = [
        {
            "number": archive["number"],
            "reason": archive["reason"],
            "made_at": archive["made_at"],
            "config": _plain_config(archive["config"]),
            "summary": _plain_summary(archive["summary"]),
        }
        for archive in await tracker_of(request).read(archives.read, row["key"])
    ]
    return answer(details)


@api.get("/api/runs/{key:int}/metrics", RUNS, query={"points": int}, answer=list[Series])
async def metrics(request: Request) -> Response:
    """Every metric of a run, thinned out."""
    row = await readable_run(request)
    points = arguments.number(request, "points") or 100
    return answer(await tracker_of(request).read(read_metrics, row["key"], points))


@api.get("/api/runs/{key:int}/console", RUNS, query={"after": int, "wait": float}, answer=Console)
async def console(request: Request) -> Response:
    """What it printed, from `after` on; waits up to `wait` seconds for more."""
    row = await readable_run(request)
    after = arguments.number(request, "after") or 0
    end = time.monotonic() + arguments.wait_seconds(request.query_params.get("wait"))
    tracker, looked_at = tracker_of(request), -1
    while True:
        # Many people follow runs that print nothing: the database is read only after a change.
        changed_at = tracker.changes.of_run(row["key"], _PRINTED)
        if changed_at != looked_at:
            page = await tracker.read(read_page, row["key"], after)
            looked_at = changed_at
        # Who waits must not hold up a stop; it asks again, and finds the next server.
        is_over = time.monotonic() >= end or request.app.state.is_stopping()
        if page["text"] or page["ended"] or is_over:
            return answer(page)
        await asyncio.sleep(0.2)


@api.post("/api/runs/{key:int}/attempts", RUNS, body=NewAttempt, answer={"number": int})
async def begin_attempt(request: Request) -> Response:
    """An execution begins."""
    row = await own_run(request)
    body = await arguments.read(request, NewAttempt)
    number = await tracker_of(request).write(
        attempts.begin,
        row["key"],
        token=body.token,
        host=body.host,
        pid=body.pid,
        now=time.time(),
    )
    return answer({"number": number})


@api.post(
    "/api/runs/{key:int}/attempts/{number:int}/console",
    RUNS,
    query={"offset": int},
    answer=Received,
)
async def append_console(request: Request) -> Response:
    """Console bytes from an offset on."""
    row, number = await own_run(request), _attempt(request)
    offset = arguments.number(request, "offset") or 0
    data = await read_body(request, LARGEST_BODY)
    try:
        stored = await tracker_of(request).write(
            leases.hear_console, row["key"], number, offset, data, time.time()
        )
    except attempts.ConsoleGap as gap:
        stored = gap.stored
    except attempts.NoAttempt as error:
        raise HttpError(404, str(error)) from error
    # A client in the program hears of a stop by itself; a program without one is told by signal.
    return answer({"stored": stored, "stop": bool(row["stop_asked"] and not row["seen_client"])})


@api.post("/api/runs/{key:int}/attempts/{number:int}/end", RUNS, body=AttemptEnd, answer=Run)
async def end_attempt(request: Request) -> Response:
    """An execution has ended."""
    row, number = await own_run(request), _attempt(request)
    body = await arguments.read_as_sent(request, AttemptEnd)
    try:
        await tracker_of(request).write(
            endings.end_attempt,
            row["key"],
            number,
            exit_code=body.exit_code,
            ended_at=body.ended_at,
            now=time.time(),
        )
    except attempts.NoAttempt as error:
        raise HttpError(404, str(error)) from error
    ended = await readable_run(request)
    return answer(await tracker_of(request).read(run_json, ended))


def run_json(connection: sqlite3.Connection, row: Row) -> Run:
    return run_fields(row, count_rows(connection, row["key"], HISTORY))


def run_fields(row: Row, steps: int) -> Run:
    """A run as people want it: plain values, no client internals."""
    return {
        "key": row["key"],
        "id": row["id"],
        "name": row["name"],
        "entity": row["entity"],
        "project": row["project_name"],
        "state": row["state"],
        "exit_code": row["exit_code"],
        "config": _plain_config(row["config"]),
        "summary": _plain_summary(row["summary"]),
        "tags": json.loads(row["tags"]),
        "notes": row["notes"],
        "group": row["group"],
        "job_type": row["job_type"],
        "host": row["host"],
        "program": row["program"],
        "command": json.loads(row["command"]) if row["command"] else None,
        "folder": row["folder"],
        "created_at": row["created_at"],
        "started_at": row["started_at"],
        "ended_at": row["ended_at"],
        "heartbeat_at": row["heartbeat_at"],
        "steps": steps,
        "stop_asked": bool(row["stop_asked"]),
    }


def _plain_config(text: str) -> dict[str, Any]:
    return {
        key: item["value"] if isinstance(item, dict) and "value" in item else item
        for key, item in json.loads(text).items()
        if key != "_wandb"
    }


def _plain_summary(text: str) -> dict[str, Any]:
    return {key: item for key, item in json.loads(text).items() if key != "_wandb"}


def _detail(connection: sqlite3.Connection, row: Row) -> dict[str, Any]:
    columns = (
        "number", "host", "pid", "started_at", "ended_at", "exit_code", "cause", "console_bytes",
        "job", "node",
    )  # fmt: skip
    files = connection.execute(
        "SELECT name, size FROM files WHERE run = ? ORDER BY name", (row["key"],)
    ).fetchall()
    return {
        **run_json(connection, row),
        "metrics": sorted(
            name
            for name in names_of_run(connection, row["key"], HISTORY)
            if not name.startswith("_")
        ),
        "attempts": [
            {
                **{name: attempt[name] for name in columns},
                "usage": usage_json(attempt["usage"]),
            }
            for attempt in attempts.of_run(connection, row["key"])
        ],
        "files": [file["name"] for file in files],
        "alerts": alerts.of_run(connection, row["key"]),
        "archives": archives.of_run(connection, row["key"]),
        "file_bytes": sum(file["size"] for file in files),
        **_whereabouts(connection, row["key"]),
    }


def _whereabouts(connection: sqlite3.Connection, run: int) -> dict[str, Any]:
    """Of a trial: which one of which sweep, and job and node, in Slurm's words, of the agent that
    had it last; `job_key` where that job is one of those we know."""
    row = connection.execute(
        "SELECT trials.sweep AS sweep, trials.number AS number, agents.job AS job, "
        "trials.settings AS settings, agents.node AS node, sweeps.id AS id, sweeps.name AS name, "
        "projects.entity AS entity, projects.name AS project FROM trials "
        "JOIN sweeps ON sweeps.key = trials.sweep JOIN projects ON projects.key = sweeps.project "
        "LEFT JOIN agents ON agents.key = trials.agent WHERE trials.run = ?",
        (run,),
    ).fetchone()
    if row is None:
        return {"trial": None, "sweep": None, "job": None, "job_key": None, "node": None}
    return {
        "trial": {
            "sweep": row["sweep"],
            "number": row["number"],
            "values": json_text.parse(row["settings"]),
        },
        "sweep": {
            "key": row["sweep"],
            **{name: row[name] for name in ("id", "name", "entity", "project")},
        },
        "job": row["job"],
        "job_key": jobs.key_of(connection, row["job"], row["sweep"]) if row["job"] else None,
        "node": row["node"],
    }


async def _list_of_runs(
    tracker: Tracker, first: bytes, keys: Sequence[int]
) -> AsyncIterator[bytes]:
    """A list of any length in pieces: others are answered in between, and none holds all of it."""
    yield b"[" + first
    # All runs of a piece may be deleted meanwhile: then no comma stands before the next.
    is_begun = bool(first)
    for start in range(_RUNS_AT_ONCE, len(keys), _RUNS_AT_ONCE):
        text = await tracker.read(_runs_text, keys[start : start + _RUNS_AT_ONCE])
        if text:
            yield b"," + text if is_begun else text
            is_begun = True
    yield b"]"


def _runs_text(connection: sqlite3.Connection, keys: Sequence[int]) -> bytes:
    """JSON for inside of a list, made in the reader's thread; runs that are gone are left out."""
    rows = runs.by_keys(connection, keys)
    content = [run_json(connection, row) for row in rows]
    if not any(is_odd(row["config"]) or is_odd(row["summary"]) for row in rows):
        with contextlib.suppress(TypeError):  # Numbers beyond 64 bits, halves of a surrogate pair.
            return orjson.dumps(content)[1:-1]
    return strict_text(content)[1:-1].encode()


def _attempt(request: Request) -> int:
    number: int = request.path_params["number"]
    return min(number, LARGEST_KEY)
