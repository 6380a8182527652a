"""runyard's own API of Slurm's jobs. Commands on the login node ask Slurm; this only remembers."""

from __future__ import annotations

import json
import math
import sqlite3
import time
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from runyard.server.http import arguments
from runyard.server.http.access import caller_of, meant, own_sweep, tracker_of
from runyard.server.http.answers import HttpError, answer, read_texts
from runyard.server.http.routes import Endpoint
from runyard.server.jobs import jobs
from runyard.server.jobs.jobs import KINDS, NewJob, News, Sight
from runyard.server.people.permissions import Caller, may_read, readable
from runyard.server.store.database import LARGEST_KEY
from runyard.server.store.sql import Row

_MOST_NEWS = 10_000
_LARGEST_TEXT = 20_000
_LARGEST_SCRIPT = 500_000


async def record_job(request: Request) -> Response:
    given = await read_texts(request)
    caller, tracker = caller_of(request), tracker_of(request)
    kind = arguments.field(given, "kind", str)
    if kind not in KINDS:
        raise HttpError(400, f"{kind[:50]!r} is no kind of job: {', '.join(KINDS)}")
    sweep = None if given.get("sweep") is None else arguments.field(given, "sweep", int)
    if sweep is not None:
        await own_sweep(request, sweep)
    new = NewJob(
        cluster=_text(given, "cluster") or "",
        job_id=_job_id(arguments.field(given, "job_id", str)),
        kind=kind,
        name=_text(given, "name") or kind,
        submitted_at=_time(given, "submitted_at") or time.time(),
        sweep=sweep,
        array=_text(given, "array"),
        tasks=max(1, arguments.field(given, "tasks", int)) if given.get("tasks") else 1,
        folder=_text(given, "folder") or "",
        log_pattern=_text(given, "log_pattern"),
        asked=_object(given, "asked"),
        snapshot=_text(given, "snapshot"),
        script=_text(given, "script", _LARGEST_SCRIPT),
        environment=_object(given, "environment"),
    )
    return answer(job_json(await tracker.write(jobs.record, caller.key, new), caller))


async def list_jobs(request: Request) -> Response:
    query = request.query_params
    tracker, caller = tracker_of(request), caller_of(request)
    sweep = arguments.number(query.get("sweep"), "sweep")
    found = await tracker.read(
        jobs.newest,
        sight_of(request),
        sweep=sweep,
        open_only=query.get("open") == "1",
        limit=arguments.number(query.get("limit"), "limit"),
    )
    if sweep is not None:  # Of one that the caller may not read, nothing is known by its number.
        found = [row for row in found if may_read(caller, row["entity"])]
    failed = await tracker.read(jobs.count_failed, found)
    return answer([job_json(row, caller, failed.get(row["key"], 0)) for row in found])


async def find_job(request: Request) -> Response:
    row = await meant(request, "job", jobs.by_words, sight_of(request))
    return answer(await tracker_of(request).read(_detail, row, caller_of(request)))


async def show_job(request: Request) -> Response:
    row = await readable_job(request)
    return answer(await tracker_of(request).read(_detail, row, caller_of(request)))


async def readable_job(request: Request) -> Row:
    """The job of the address, if the caller may see it."""
    key = min(request.path_params["key"], LARGEST_KEY)
    row = await tracker_of(request).read(jobs.by_key, key, sight_of(request))
    if row is None:
        raise HttpError(404, f"there is no job with key {key}")
    return row


async def hear_news(request: Request) -> Response:
    """What Slurm said of jobs; words older than what is known change nothing."""
    given = arguments.field(await read_texts(request), "news", list)
    if len(given) > _MOST_NEWS or not all(isinstance(one, dict) for one in given):
        raise HttpError(400, f"news: a list of objects, at most {_MOST_NEWS}")
    caller = caller_of(request)
    news = [_news(one) for one in given]
    owner = None if caller.admin else caller.key
    return answer({"changed": await tracker_of(request).write(jobs.hear, owner, news)})


def sight_of(request: Request) -> Sight:
    caller = caller_of(request)
    return Sight(caller.key, readable(caller))


def job_json(row: Row, caller: Caller, failed: int = 0) -> dict[str, Any]:
    """A job as people and programs want it; `mine` is whether the caller submitted it, `failed`
    how many of its trials did."""
    whole = {**{name: row[name] for name in _TOLD}, "project": row["project_name"]}
    if row["entity"] is not None and not may_read(caller, row["entity"]):
        # The job of somebody who has left the team that the sweep belongs to.
        whole |= dict.fromkeys(_OF_SWEEP)
        failed = 0
    return {
        **whole,
        "user": row["user_name"],
        "mine": row["user"] == caller.key,
        "asked": json.loads(row["asked"]),
        "states": json.loads(row["states"]),
        "used": json.loads(row["used"]),
        "failed": failed,
    }


_TOLD = (
    "key", "cluster", "job_id", "sweep", "sweep_id", "sweep_name", "entity", "kind", "name",
    "array", "tasks", "folder", "log_pattern", "snapshot", "submitted_at", "polled_at", "reason",
    "starts_at", "started_at", "ended_at", "wish",
)  # fmt: skip


_OF_SWEEP = ("sweep", "sweep_id", "sweep_name", "entity", "project")


def _detail(connection: sqlite3.Connection, row: Row, caller: Caller) -> dict[str, Any]:
    told = (
        "key", "job", "node", "host", "pid", "slots", "running", "created_at", "heard_at",
        "left_at", "why",
    )  # fmt: skip
    found = jobs.agents_in(connection, row)
    # A script has paths and variables of its owner's; others who see the job do not need them.
    is_shown = row["user"] == caller.key or caller.admin
    return {
        **job_json(row, caller, len(jobs.failed_trials(connection, row))),
        "script": row["script"] if is_shown else None,
        "environment": json.loads(row["environment"]) if is_shown else {},
        "agents": [{name: one[name] for name in told} for one in found],
    }


def _news(given: dict[str, Any]) -> News:
    states = {
        str(state)[:50]: count
        for state, count in _object(given, "states").items()
        if isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= LARGEST_KEY
    }
    return News(
        key=min(arguments.field(given, "key", int), LARGEST_KEY),
        polled_at=float(arguments.field(given, "polled_at", (int, float))),
        states=states,
        reason=_text(given, "reason"),
        starts_at=_time(given, "starts_at"),
        started_at=_time(given, "started_at"),
        ended_at=_time(given, "ended_at"),
        used=_object(given, "used"),
    )


def _job_id(text: str) -> str:
    if not text.isdecimal() or len(text) > 20:
        raise HttpError(400, f"{text[:50]!r} is no job's number")
    return text


def _text(given: dict[str, Any], name: str, longest: int = _LARGEST_TEXT) -> str | None:
    if given.get(name) is None:
        return None
    text: str = arguments.field(given, name, str)
    return text[:longest]


def _time(given: dict[str, Any], name: str) -> float | None:
    if given.get(name) is None:
        return None
    found = float(arguments.field(given, name, (int, float)))
    return found if math.isfinite(found) else None


def _object(given: dict[str, Any], name: str) -> dict[str, Any]:
    found = given.get(name)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise HttpError(400, f"{name} is not an object")
    return found


ENDPOINTS = [
    Endpoint("GET", "/api/job", find_job),
    Endpoint("GET", "/api/jobs", list_jobs),
    Endpoint("POST", "/api/jobs", record_job),
    Endpoint("POST", "/api/jobs/news", hear_news),
    Endpoint("GET", "/api/jobs/{key:int}", show_job),
]
