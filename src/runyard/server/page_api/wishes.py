"""Cancelling Slurm's jobs from the page.

The server never speaks to Slurm: it may run where there is none, and it holds no rights there. A
wish stays with the job. Agents in it are given nothing more, and the next runyard command on the
login node that asks Slurm about its jobs carries the wish out.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from runyard.server.access import LARGEST_KEY, caller_of, tracker_of
from runyard.server.answers import Unacceptable, answer, read_json
from runyard.server.job_api import sight_of
from runyard.server.store import jobs, wishes


async def wish(request: Request) -> Response:
    """Ask for a job's end, or take that back."""
    key = min(request.path_params["key"], LARGEST_KEY)
    tracker = tracker_of(request)
    row = await tracker.read(jobs.by_key, key, sight_of(request))
    if row is None:
        raise Unacceptable(404, f"there is no job with key {key}")
    if row["user"] != caller_of(request).key:
        raise Unacceptable(403, f"job {row['job_id']} is {row['user_name']}'s: only they cancel it")
    wanted = (await read_json(request)).get("wish")
    if wanted is not None and wanted not in wishes.WISHES:
        raise Unacceptable(400, f"wish: {', '.join(wishes.WISHES)}, or null to take it back")
    if wanted is not None and row["ended_at"] is not None:
        raise Unacceptable(409, f"job {row['job_id']} is over already")
    await tracker.write(wishes.make, key, wanted)
    tracker.open_wishes = await tracker.read(wishes.count)
    if row["sweep"] is not None:
        tracker.sweeps.wake(row["sweep"])
    return answer({"wish": wanted})


ROUTES = [Route("/api/jobs/{key:int}/wish", wish, methods=["POST"])]
