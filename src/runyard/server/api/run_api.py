"""runyard's own API: what the command line and the page ask."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sqlite3
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from runyard.proof import PROOF_PATH, on_this_machine, prove
from runyard.server.api.backup import backup
from runyard.server.api.charts import curves
from runyard.server.api.history_api import rows
from runyard.server.history import archives
from runyard.server.history.history import HISTORY, count_rows
from runyard.server.history.reading.metrics import read_metrics
from runyard.server.http import arguments
from runyard.server.http.access import (
    caller_of,
    meant,
    need_admin,
    own_run,
    readable_run,
    tracker_of,
)
from runyard.server.http.answers import (
    LARGEST_BODY,
    HttpError,
    answer,
    read_body,
    read_json,
    read_texts,
)
from runyard.server.http.routes import Access, Endpoint
from runyard.server.jobs import jobs
from runyard.server.people.permissions import RUNS, Entities, readable
from runyard.server.processes import attempts
from runyard.server.processes.attempts import usage_json
from runyard.server.processes.consoles import read_page
from runyard.server.runs import alerts, runs
from runyard.server.store.database import LARGEST_KEY
from runyard.server.store.sql import Row
from runyard.server.sweeps.ledger import endings, leases
from runyard.version import __version__


async def health(request: Request) -> Response:
    """That the server is there, and the caller's runs; more of it is its owner's business."""
    tracker, caller = tracker_of(request), caller_of(request)
    count, running = await tracker.read(_count_runs, readable(caller))
    counts = {"runs": count, "running": running}
    if not caller.admin:
        return answer(counts)
    # Beside the event loop: on a busy network file system a stat can take seconds.
    size = await asyncio.to_thread(_database_bytes, tracker.home.path)
    return answer(
        {
            "version": __version__,
            "pid": os.getpid(),
            "hostname": socket.gethostname(),
            "started_at": tracker.started_at,
            "home": str(tracker.home.path),
            **counts,
            "database_bytes": size,
            "writer": {kind: asdict(times) for kind, times in tracker.writer_times.items()},
            "note": tracker.note,
        }
    )


async def proof(request: Request) -> Response:
    """Shows, before a key is sent, that this is the server who gave it out (`proof.py`)."""
    asked, tracker = request.query_params, tracker_of(request)
    key = tracker.accounts.good_key(asked.get("key", ""))
    if key is None:
        raise HttpError(404, "there is no such key")
    nonce = asked.get("nonce", "")[:100]
    return answer(
        {
            "proof": prove(key.hashed, nonce, tracker.url),
            "proof_here": prove(key.hashed, nonce, on_this_machine(tracker.url)),
        }
    )


async def stop_server(request: Request) -> Response:
    need_admin(request, "stop the server")
    # Whoever starts it again at once keeps the port from others meanwhile.
    request.app.state.keeps_port = request.query_params.get("keep_port") == "1"
    request.app.state.stop()
    return answer({"stopping": True})


async def list_runs(request: Request) -> Response:
    given = request.query_params
    limit = arguments.number(given.get("limit"), "limit")
    rows = await tracker_of(request).read(
        _list_runs,
        given.get("project"),
        given.get("state"),
        limit,
        readable(caller_of(request)),
        alone=given.get("alone") == "1",
        sweep=arguments.number(given.get("sweep"), "sweep"),
    )
    return answer(rows)


async def find_run(request: Request) -> Response:
    row = await meant(request, "run", runs.by_words, readable(caller_of(request)))
    return answer(await tracker_of(request).read(_detail, row))


async def create_run(request: Request) -> Response:
    new = arguments.new_run(await read_texts(request))
    caller = caller_of(request)
    entity = new.get("entity") or caller.name
    if not tracker_of(request).accounts.may_write(caller, entity):
        raise HttpError(403, f"{entity!r} is not an entity that you may write to")
    row = await tracker_of(request).write(
        runs.create_launched,
        new,
        entity=entity,
        user=caller.key,
        now=time.time(),
    )
    return answer(await tracker_of(request).read(run_json, row))


async def delete_run(request: Request) -> Response:
    row = await own_run(request)
    await tracker_of(request).delete_run(
        caller_of(request),
        row["key"],
        with_artifacts=arguments.number(request.query_params.get("artifacts"), "artifacts") == 1,
    )
    return answer({"deleted": row["id"]})


async def stop_run(request: Request) -> Response:
    row = await own_run(request)
    await tracker_of(request).write(endings.ask_to_stop, row["key"], time.time())
    tracker_of(request).sweeps.quiet_periods.clear()  # Its agent, if it has one, is to hear of it.
    return answer(await tracker_of(request).read(run_json, await readable_run(request)))


async def list_archives(request: Request) -> Response:
    """What was overwritten or rewound, with the config and the summary of that time."""
    row = await readable_run(request)
    found = await tracker_of(request).read(archives.read, row["key"])
    return answer(
        [
            {
                **{name: archive[name] for name in ("number", "reason", "made_at")},
                "config": _plain_config(archive["config"]),
                "summary": _plain_summary(archive["summary"]),
            }
            for archive in found
        ]
    )


async def metrics(request: Request) -> Response:
    row = await readable_run(request)
    points = arguments.number(request.query_params.get("points"), "points") or 100
    return answer(await tracker_of(request).read(read_metrics, row["key"], points))


async def console(request: Request) -> Response:
    """The console from `after` on; with `wait`, answers when there is more, or at the end."""
    row = await readable_run(request)
    given = request.query_params
    after = arguments.number(given.get("after"), "after") or 0
    end = time.monotonic() + arguments.wait_seconds(given.get("wait"))
    while True:
        page = await tracker_of(request).read(read_page, row["key"], after)
        # Who waits must not hold up a stop; it asks again, and finds the next server.
        is_over = time.monotonic() >= end or request.app.state.is_stopping()
        if page["text"] or page["ended"] or is_over:
            return answer(page)
        await asyncio.sleep(0.2)


async def begin_attempt(request: Request) -> Response:
    row = await own_run(request)
    given = await read_texts(request)
    number = await tracker_of(request).write(
        attempts.begin,
        row["key"],
        token=arguments.field(given, "token", str),
        host=arguments.field(given, "host", str),
        pid=arguments.field(given, "pid", int),
        now=time.time(),
    )
    return answer({"number": number})


async def append_console(request: Request) -> Response:
    row, number = await own_run(request), _attempt(request)
    offset = arguments.number(request.query_params.get("offset"), "offset") or 0
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


async def end_attempt(request: Request) -> Response:
    row, number = await own_run(request), _attempt(request)
    given = await read_json(request)
    try:
        await tracker_of(request).write(
            endings.end_attempt,
            row["key"],
            number,
            exit_code=arguments.field(given, "exit_code", int),
            ended_at=float(arguments.field(given, "ended_at", (int, float))),
            now=time.time(),
        )
    except attempts.NoAttempt as error:
        raise HttpError(404, str(error)) from error
    ended = await readable_run(request)
    return answer(await tracker_of(request).read(run_json, ended))


def run_json(connection: sqlite3.Connection, row: Row) -> dict[str, Any]:
    return run_fields(row, count_rows(connection, row["key"], HISTORY))


def run_fields(row: Row, steps: int) -> dict[str, Any]:
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
    told = ("number", "host", "pid", "started_at", "ended_at", "exit_code", "cause")
    files = connection.execute(
        "SELECT name, size FROM files WHERE run = ? ORDER BY name", (row["key"],)
    ).fetchall()
    return {
        **run_json(connection, row),
        "attempts": [
            {
                **{name: attempt[name] for name in told},
                "console_bytes": attempt["console_bytes"],
                "usage": usage_json(attempt["usage"]),
                "job": attempt["job"],
                "node": attempt["node"],
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
    found = connection.execute(
        "SELECT trials.sweep AS sweep, trials.number AS number, agents.job AS job, "
        "agents.node AS node, sweeps.id AS id, sweeps.name AS name, "
        "projects.entity AS entity, projects.name AS project FROM trials "
        "JOIN sweeps ON sweeps.key = trials.sweep JOIN projects ON projects.key = sweeps.project "
        "LEFT JOIN agents ON agents.key = trials.agent WHERE trials.run = ?",
        (run,),
    ).fetchone()
    if found is None:
        return {"trial": None, "sweep": None, "job": None, "job_key": None, "node": None}
    return {
        "trial": {"sweep": found["sweep"], "number": found["number"]},
        "sweep": {
            "key": found["sweep"],
            **{n: found[n] for n in ("id", "name", "entity", "project")},
        },
        "job": found["job"],
        "job_key": jobs.key_of(connection, found["job"], found["sweep"]) if found["job"] else None,
        "node": found["node"],
    }


def _list_runs(
    connection: sqlite3.Connection,
    project: str | None,
    state: str | None,
    limit: int | None,
    entities: Entities | None,
    *,
    alone: bool,
    sweep: int | None,
) -> list[dict[str, Any]]:
    rows = runs.newest(connection, project, state, limit, entities, alone=alone, sweep=sweep)
    return [run_json(connection, row) for row in rows]


def _count_runs(
    connection: sqlite3.Connection, entities: Entities | None = None
) -> tuple[int, int]:
    if entities is not None:
        return runs.count_of(connection, entities)
    # Two questions that indexes answer alone; every command asks them.
    count = connection.execute("SELECT count(*) FROM runs").fetchone()[0]
    running = connection.execute(
        "SELECT count(*) FROM runs WHERE state IN ('running', 'preempting')"
    ).fetchone()[0]
    return count, running


def _database_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("runyard.db*") if path.is_file())


def _attempt(request: Request) -> int:
    number: int = request.path_params["number"]
    return min(number, LARGEST_KEY)


ENDPOINTS = [
    Endpoint("GET", "/api/health", health, RUNS),
    Endpoint("GET", "/api/run", find_run, RUNS),
    Endpoint("GET", "/api/runs", list_runs, RUNS),
    Endpoint("POST", "/api/curves", curves, RUNS),
    Endpoint("POST", "/api/runs", create_run, RUNS),
    Endpoint("DELETE", "/api/runs/{key:int}", delete_run),
    Endpoint("POST", "/api/runs/{key:int}/stop", stop_run),
    Endpoint("GET", "/api/runs/{key:int}/archives", list_archives, RUNS),
    Endpoint("GET", "/api/runs/{key:int}/metrics", metrics, RUNS),
    Endpoint("GET", "/api/runs/{key:int}/rows", rows, RUNS),
    Endpoint("GET", "/api/runs/{key:int}/console", console, RUNS),
    Endpoint("POST", "/api/runs/{key:int}/attempts", begin_attempt, RUNS),
    Endpoint("POST", "/api/runs/{key:int}/attempts/{number:int}/console", append_console, RUNS),
    Endpoint("POST", "/api/runs/{key:int}/attempts/{number:int}/end", end_attempt, RUNS),
    Endpoint("POST", "/api/server/stop", stop_server, access=Access.KEY),
    Endpoint("POST", "/api/server/backup", backup, access=Access.KEY),
    Endpoint("GET", PROOF_PATH, proof, access=Access.EVERYBODY),
]
