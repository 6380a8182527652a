"""runyard's own API: what the command line and the page ask."""

from __future__ import annotations

import asyncio
import codecs
import json
import os
import socket
import sqlite3
import time
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from runyard import __version__
from runyard.server import states
from runyard.server.answers import Unacceptable, answer, read_body, read_json
from runyard.server.metrics import read_metrics
from runyard.server.store import attempts, runs
from runyard.server.store.lines import count_lines, get_lines
from runyard.server.store.runs import Row
from runyard.server.tracker import Caller, Tracker

_CONSOLE_PAGE = 1 << 20
_LONGEST_WAIT = 30.0


async def health(request: Request) -> Response:
    tracker = _tracker(request)
    count, running = await tracker.read(_count_runs)
    size = sum(
        path.stat().st_size for path in tracker.home.path.glob("runyard.db*") if path.is_file()
    )
    return answer(
        {
            "version": __version__,
            "pid": os.getpid(),
            "hostname": socket.gethostname(),
            "started_at": tracker.started_at,
            "home": str(tracker.home.path),
            "runs": count,
            "running": running,
            "database_bytes": size,
        }
    )


async def stop_server(request: Request) -> Response:
    request.app.state.stop()
    return answer({"stopping": True})


async def list_runs(request: Request) -> Response:
    given = request.query_params
    limit = _number(given.get("limit"), "limit")
    rows = await _tracker(request).read(_list_runs, given.get("project"), given.get("state"), limit)
    return answer(rows)


async def find_run(request: Request) -> Response:
    words = request.query_params.get("name") or ""
    try:
        row = await _tracker(request).read(runs.by_words, words)
    except runs.Ambiguous as error:
        names = ", ".join(f"{row['project_name']}/{row['id']}" for row in error.rows)
        raise Unacceptable(404, f"{words!r} is more than one run: {names}") from error
    if row is None:
        raise Unacceptable(404, f"there is no run {words!r}")
    return answer(await _tracker(request).read(_detail, row))


async def create_run(request: Request) -> Response:
    new = await read_json(request)
    for name in ("id", "project", "command"):
        if not new.get(name):
            raise Unacceptable(400, f"{name} is missing")
    caller: Caller = request.scope["caller"]
    row = await _tracker(request).write(
        runs.create_launched,
        new,
        entity=new.get("entity") or caller.name,
        user=caller.key,
        now=time.time(),
    )
    return answer(await _tracker(request).read(run_json, row))


async def metrics(request: Request) -> Response:
    row = await _run(request)
    points = _number(request.query_params.get("points"), "points") or 100
    return answer(await _tracker(request).read(read_metrics, row["key"], points))


async def console(request: Request) -> Response:
    """The console from `after` on; with `wait`, answers when there is more, or at the end."""
    row = await _run(request)
    after = _number(request.query_params.get("after"), "after") or 0
    wait = min(float(request.query_params.get("wait") or 0), _LONGEST_WAIT)
    end = time.monotonic() + wait
    while True:
        page = await _tracker(request).read(_console_page, row["key"], after)
        if page["text"] or page["ended"] or time.monotonic() >= end:
            return answer(page)
        await asyncio.sleep(0.2)


async def begin_attempt(request: Request) -> Response:
    row = await _run(request)
    given = await read_json(request)
    number = await _tracker(request).write(
        attempts.begin,
        row["key"],
        token=str(given["token"]),
        host=str(given["host"]),
        pid=int(given["pid"]),
        now=time.time(),
    )
    return answer({"number": number})


async def append_console(request: Request) -> Response:
    row = await _run(request)
    offset = _number(request.query_params.get("offset"), "offset") or 0
    data = await read_body(request)
    try:
        stored = await _tracker(request).write(
            attempts.append_console,
            row["key"],
            request.path_params["number"],
            offset,
            data,
            time.time(),
        )
    except attempts.ConsoleGap as gap:
        stored = gap.stored
    return answer({"stored": stored})


async def end_attempt(request: Request) -> Response:
    row = await _run(request)
    given = await read_json(request)
    await _tracker(request).write(
        attempts.end,
        row["key"],
        request.path_params["number"],
        exit_code=int(given["exit_code"]),
        ended_at=float(given["ended_at"]),
    )
    ended = await _run(request)
    return answer(await _tracker(request).read(run_json, ended))


def run_json(connection: sqlite3.Connection, row: Row) -> dict[str, Any]:
    """A run as people want it: plain values, no client internals."""
    config = json.loads(row["config"])
    summary = json.loads(row["summary"])
    return {
        "key": row["key"],
        "id": row["id"],
        "name": row["name"],
        "entity": row["entity"],
        "project": row["project_name"],
        "state": row["state"],
        "exit_code": row["exit_code"],
        "config": {
            key: item["value"] if isinstance(item, dict) and "value" in item else item
            for key, item in config.items()
            if key != "_wandb"
        },
        "summary": {key: item for key, item in summary.items() if key != "_wandb"},
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
        "steps": count_lines(connection, row["key"], "history"),
    }


def _detail(connection: sqlite3.Connection, row: Row) -> dict[str, Any]:
    told = ("number", "host", "pid", "started_at", "ended_at", "exit_code", "cause")
    files = connection.execute("SELECT name FROM files WHERE run = ? ORDER BY name", (row["key"],))
    return {
        **run_json(connection, row),
        "attempts": [
            {**{name: attempt[name] for name in told}, "console_bytes": attempt["console_bytes"]}
            for attempt in attempts.of_run(connection, row["key"])
        ],
        "files": [file["name"] for file in files],
    }


def _list_runs(
    connection: sqlite3.Connection, project: str | None, state: str | None, limit: int | None
) -> list[dict[str, Any]]:
    rows = runs.newest(connection, project, state, limit)
    return [run_json(connection, row) for row in rows]


def _count_runs(connection: sqlite3.Connection) -> tuple[int, int]:
    row = connection.execute(
        "SELECT count(*), coalesce(sum(state IN ('running', 'preempting')), 0) FROM runs"
    ).fetchone()
    return row[0], row[1]


def _console_page(connection: sqlite3.Connection, run: int, after: int) -> dict[str, Any]:
    row = runs.by_key(connection, run)
    ended = row is None or row["state"] not in (*states.ALIVE, "pending")
    if attempts.of_run(connection, run):
        data, following = attempts.read_console(connection, run, after, _CONSOLE_PAGE)
        # Stop before a character that is cut in two; the next page begins with it.
        text, used = codecs.getincrementaldecoder("utf-8")("replace"), len(data)
        decoded = text.decode(data, final=ended and used < _CONSOLE_PAGE)
        following -= len(text.getstate()[0])
        more = used >= _CONSOLE_PAGE
    else:
        lines = [line for number, line in get_lines(connection, run, "output") if number >= after]
        decoded = "".join(f"{_without_time(line)}\n" for line in lines)
        following = max(after, count_lines(connection, run, "output"))
        more = False
    return {"text": decoded, "next": following, "ended": ended and not more}


def _without_time(line: str) -> str:
    """A console line of the client's without the time (and `ERROR`) that it puts in front."""
    text = line.removeprefix("ERROR ")
    stamp, blank, rest = text.partition(" ")
    return rest if blank and len(stamp) >= 19 and stamp[4:5] == "-" and "T" in stamp else line


def _tracker(request: Request) -> Tracker:
    tracker: Tracker = request.app.state.tracker
    return tracker


async def _run(request: Request) -> Row:
    row = await _tracker(request).read(runs.by_key, request.path_params["key"])
    if row is None:
        raise Unacceptable(404, f"there is no run with key {request.path_params['key']}")
    return row


def _number(text: str | None, name: str) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError as error:
        raise Unacceptable(400, f"{name} is not a number: {text!r}") from error


ROUTES = [
    Route("/api/health", health),
    Route("/api/server/stop", stop_server, methods=["POST"]),
    Route("/api/run", find_run),
    Route("/api/runs", list_runs),
    Route("/api/runs", create_run, methods=["POST"]),
    Route("/api/runs/{key:int}/metrics", metrics),
    Route("/api/runs/{key:int}/console", console),
    Route("/api/runs/{key:int}/attempts", begin_attempt, methods=["POST"]),
    Route("/api/runs/{key:int}/attempts/{number:int}/console", append_console, methods=["POST"]),
    Route("/api/runs/{key:int}/attempts/{number:int}/end", end_attempt, methods=["POST"]),
]
