"""A job's log for its page: all tasks together, as it grows."""

from __future__ import annotations

import asyncio
import time
from dataclasses import asdict, dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from runyard.server.api.job_api import readable_job
from runyard.server.api.page_api.page_answers import send_json
from runyard.server.http import arguments
from runyard.server.http.answers import HttpError
from runyard.server.http.routes import Endpoints
from runyard.server.jobs.job_logs import Look, read_logs
from runyard.server.store.sql import Row
from runyard.shapes.jobs import JobLog

api = Endpoints("jobs")

_LOOK_EVERY = 1.0
# Where looking is slow, on a busy file system, it is done less often.
_REST = 20
# A file system that hangs must not take all of the server's threads.
_AT_ONCE = 4


@dataclass
class LogQuestion:
    """`after`: how many bytes of each task's log are known."""

    after: dict[str, int] = field(default_factory=dict)
    task: str | None = None
    whole: bool = False
    wait: float = 0.0


@api.post("/api/jobs/{key:int}/log", body=LogQuestion, answer=JobLog)
async def read_log(request: Request) -> Response:
    """What its tasks printed after `after` (task → bytes), from its log files if the server sees
    them; waits up to `wait` seconds for more.
    """
    row = await readable_job(request)
    body = await arguments.read_as_sent(request, LogQuestion)
    after, task = body.after, body.task
    if any(at < 0 for at in after.values()):
        raise HttpError(400, "after: how many bytes of each task's log are known")
    if task is not None and not task.isdecimal():
        raise HttpError(400, f"{task[:50]!r} is no task's number")
    end = time.monotonic() + arguments.wait_seconds(body.wait)
    if not row["user_is_owner"]:
        unread = f"Its files are {row['user_name']}'s, and the server reads only its owner's."
        return await send_json(request, _log_json(row, Look(unread=unread)))
    turns = _turns(request)
    while True:
        began = time.monotonic()
        async with turns:
            look = await asyncio.to_thread(read_logs, row, after, task=task, whole=body.whole)
        now = time.monotonic()
        is_over = row["ended_at"] is not None or now >= end or request.app.state.is_stopping()
        if look.pieces or look.more or is_over:
            return await send_json(request, _log_json(row, look))
        after = look.after
        await asyncio.sleep(min(max(_LOOK_EVERY, _REST * (now - began)), max(0.0, end - now)))
        row = await readable_job(request)


def _turns(request: Request) -> asyncio.Semaphore:
    state = request.app.state
    if not hasattr(state, "log_turns"):
        state.log_turns = asyncio.Semaphore(_AT_ONCE)
    turns: asyncio.Semaphore = state.log_turns
    return turns


def _log_json(row: Row, look: Look) -> dict[str, Any]:
    return {**asdict(look), "ended": row["ended_at"] is not None}
