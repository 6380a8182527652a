"""A job's log for its page: all tasks together, as it grows."""

from __future__ import annotations

import asyncio
import time
from dataclasses import asdict
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from runyard.server.api.job_api import readable_job
from runyard.server.api.page_api.page_answers import send_json
from runyard.server.http import arguments
from runyard.server.http.answers import HttpError, read_json
from runyard.server.http.routes import Endpoint
from runyard.server.jobs.job_logs import Look, read_logs
from runyard.server.store.sql import Row

_LOOK_EVERY = 1.0
# Where looking is slow, on a busy file system, it is done less often.
_REST = 20
# A file system that hangs must not take all of the server's threads.
_AT_ONCE = 4


async def read_log(request: Request) -> Response:
    """New lines since `after`; with `wait`, answers when there are some, or at the job's end."""
    row = await readable_job(request)
    given = await read_json(request)
    after = given.get("after") or {}
    if not isinstance(after, dict) or not all(type(at) is int and at >= 0 for at in after.values()):
        raise HttpError(400, "after: how many bytes of each task's log are known")
    task = None if given.get("task") is None else arguments.field(given, "task", str)
    if task is not None and not task.isdecimal():
        raise HttpError(400, f"{task[:50]!r} is no task's number")
    wait = arguments.wait_seconds(given.get("wait"))
    end = time.monotonic() + wait
    if not row["user_is_owner"]:
        unread = f"Its files are {row['user_name']}'s, and the server reads only its owner's."
        return await send_json(request, _told(row, Look(unread=unread)))
    turns = _turns(request)
    while True:
        began = time.monotonic()
        async with turns:
            look = await asyncio.to_thread(
                read_logs, row, after, task=task, whole=given.get("whole") is True
            )
        now = time.monotonic()
        is_over = row["ended_at"] is not None or now >= end or request.app.state.is_stopping()
        if look.pieces or look.more or is_over:
            return await send_json(request, _told(row, look))
        after = look.after
        await asyncio.sleep(min(max(_LOOK_EVERY, _REST * (now - began)), max(0.0, end - now)))
        row = await readable_job(request)


def _turns(request: Request) -> asyncio.Semaphore:
    state = request.app.state
    if not hasattr(state, "log_turns"):
        state.log_turns = asyncio.Semaphore(_AT_ONCE)
    turns: asyncio.Semaphore = state.log_turns
    return turns


def _told(row: Row, look: Look) -> dict[str, Any]:
    return {**asdict(look), "ended": row["ended_at"] is not None}


ENDPOINTS = [
    Endpoint("POST", "/api/jobs/{key:int}/log", read_log),
]
