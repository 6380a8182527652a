"""runyard's own API of Slurm's jobs. Commands on the login node ask Slurm; this only remembers."""

from __future__ import annotations

import json
import sqlite3
import time
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from runyard.server.http import arguments
from runyard.server.http.access import caller_of, meant, own_sweep, tracker_of
from runyard.server.http.answers import HttpError, answer
from runyard.server.http.routes import Endpoints
from runyard.server.jobs import jobs
from runyard.server.jobs.jobs import KINDS, News, Sight
from runyard.server.people.permissions import Caller, may_read, readable
from runyard.server.store.database import LARGEST_KEY
from runyard.server.store.sql import Row
from runyard.shapes.jobs import Job, JobDetail, NewJob, NewsOfJob

api = Endpoints("jobs")

_MOST_NEWS = 10_000
_LARGEST_TEXT = 20_000
_LARGEST_SCRIPT = 500_000


@dataclass
class JobsNews:
    news: list[Any]


@api.post("/api/jobs", body=NewJob, answer=Job)
async def record_job(request: Request) -> Response:
    """Remember a job that was submitted."""
    body = await arguments.read(request, NewJob)
    caller, tracker = caller_of(request), tracker_of(request)
    if (kind := body["kind"]) not in KINDS:
        raise HttpError(400, f"{kind[:50]!r} is no kind of job: {', '.join(KINDS)}")
    if (sweep := body.get("sweep")) is not None:
        await own_sweep(request, sweep)
    if not body["job_id"].isdecimal() or len(body["job_id"]) > 20:
        raise HttpError(400, f"{body['job_id'][:50]!r} is no job's number")
    new = jobs.NewJob(
        cluster=_cut(body.get("cluster")) or "",
        job_id=body["job_id"],
        kind=kind,
        name=_cut(body.get("name")) or kind,
        submitted_at=body.get("submitted_at") or time.time(),
        sweep=sweep,
        array=_cut(body.get("array")),
        tasks=max(1, body.get("tasks", 1)),
        folder=_cut(body.get("folder")) or "",
        log_pattern=_cut(body.get("log_pattern")),
        asked=body.get("asked", {}),
        snapshot=_cut(body.get("snapshot")),
        script=_cut(body.get("script"), _LARGEST_SCRIPT),
        environment=body.get("environment", {}),
    )
    return answer(job_json(await tracker.write(jobs.record, caller.key, new), caller))


@api.get("/api/jobs", query={"sweep": int, "open": int, "limit": int}, answer=list[Job])
async def list_jobs(request: Request) -> Response:
    """Slurm's jobs that runyard submitted, the newest first."""
    tracker, caller = tracker_of(request), caller_of(request)
    sweep = arguments.number(request, "sweep")
    rows = await tracker.read(
        jobs.newest,
        sight_of(request),
        sweep=sweep,
        open_only=request.query_params.get("open") == "1",
        limit=arguments.number(request, "limit"),
    )
    if sweep is not None:  # Of one that the caller may not read, nothing is known by its number.
        rows = [row for row in rows if may_read(caller, row["entity"])]
    failed = await tracker.read(jobs.count_failed, rows)
    return answer([job_json(row, caller, failed.get(row["key"], 0)) for row in rows])


@api.get("/api/job", query={"name": str}, answer=JobDetail)
async def find_job(request: Request) -> Response:
    """One job by Slurm's number or its name."""
    row = await meant(request, "job", jobs.by_words, sight_of(request))
    return answer(await tracker_of(request).read(_detail, row, caller_of(request)))


@api.get("/api/jobs/{key:int}", answer=JobDetail)
async def show_job(request: Request) -> Response:
    """A job, the agents in it, its script and its environment."""
    row = await readable_job(request)
    return answer(await tracker_of(request).read(_detail, row, caller_of(request)))


async def readable_job(request: Request) -> Row:
    """The job of the address, if the caller may see it."""
    key = min(request.path_params["key"], LARGEST_KEY)
    row = await tracker_of(request).read(jobs.by_key, key, sight_of(request))
    if row is None:
        raise HttpError(404, f"there is no job with key {key}")
    return row


@api.post("/api/jobs/news", body=JobsNews, answer={"changed": list[int]})
async def hear_news(request: Request) -> Response:
    """What Slurm said of jobs.

    Words older than what is known change nothing.
    """
    items = (await arguments.read(request, JobsNews)).news
    if len(items) > _MOST_NEWS or not all(isinstance(item, dict) for item in items):
        raise HttpError(400, f"news: a list of objects, at most {_MOST_NEWS}")
    caller = caller_of(request)
    news = [_news(arguments.checked(item, NewsOfJob)) for item in items]
    owner = None if caller.admin else caller.key
    return answer({"changed": await tracker_of(request).write(jobs.hear, owner, news)})


def sight_of(request: Request) -> Sight:
    caller = caller_of(request)
    return Sight(caller.key, readable(caller))


def job_json(row: Row, caller: Caller, failed: int = 0) -> dict[str, Any]:
    """A job as people and programs want it; `mine` is whether the caller submitted it, `failed`
    how many of its trials did."""
    whole = {**{name: row[name] for name in _COLUMNS}, "project": row["project_name"]}
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


_COLUMNS = (
    "key", "cluster", "job_id", "sweep", "sweep_id", "sweep_name", "entity", "kind", "name",
    "array", "tasks", "folder", "log_pattern", "snapshot", "submitted_at", "polled_at", "reason",
    "starts_at", "started_at", "ended_at", "wish",
)  # fmt: skip


_OF_SWEEP = ("sweep", "sweep_id", "sweep_name", "entity", "project")


def _detail(connection: sqlite3.Connection, row: Row, caller: Caller) -> dict[str, Any]:
    columns = (
        "key", "job", "node", "host", "pid", "slots", "packing", "running", "created_at",
        "heard_at", "left_at", "why",
    )  # fmt: skip
    # A script has paths and variables of its owner's; others who see the job do not need them.
    is_shown = row["user"] == caller.key or caller.admin
    return {
        **job_json(row, caller, len(jobs.failed_trials(connection, row))),
        "script": row["script"] if is_shown else None,
        "environment": json.loads(row["environment"]) if is_shown else {},
        "agents": [
            {name: agent[name] for name in columns} for agent in jobs.agents_in(connection, row)
        ],
    }


def _news(news: NewsOfJob) -> News:
    return News(
        key=min(news["key"], LARGEST_KEY),
        polled_at=news["polled_at"],
        states={
            state[:50]: count
            for state, count in news["states"].items()
            if 0 <= count <= LARGEST_KEY
        },
        reason=_cut(news.get("reason")),
        starts_at=news.get("starts_at"),
        started_at=news.get("started_at"),
        ended_at=news.get("ended_at"),
        used=news.get("used", {}),
    )


def _cut(text: str | None, longest: int = _LARGEST_TEXT) -> str | None:
    return text and text[:longest]
