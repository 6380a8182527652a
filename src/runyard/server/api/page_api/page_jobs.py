"""Cancelling and retrying Slurm's jobs from the page.

The server never speaks to Slurm: it may run where there is none, and it holds no rights there. A
wish stays with the job. Agents in it are given nothing more, and the next runyard command on the
login node that asks Slurm about its jobs carries the wish out.
"""

from __future__ import annotations

import time

from starlette.requests import Request
from starlette.responses import Response

from runyard.server.api.job_api import readable_job
from runyard.server.api.sweep_json import sweep_json
from runyard.server.http.access import caller_of, must_write, tracker_of
from runyard.server.http.answers import HttpError, answer, read_json
from runyard.server.http.routes import Endpoints
from runyard.server.jobs import jobs
from runyard.server.sweeps.ledger import leases, sweep_changes, sweeps
from runyard.shapes.jobs import Retried

api = Endpoints("jobs")


@api.post("/api/jobs/{key:int}/wish", body={"wish": str | None}, answer={"wish": str | None})
async def wish(request: Request) -> Response:
    """`cancel`: its agents begin nothing more, and the next command on the login node cancels it;
    null takes that back.
    """
    tracker, row = tracker_of(request), await readable_job(request)
    if row["user"] != caller_of(request).key:
        raise HttpError(403, f"job {row['job_id']} is {row['user_name']}'s: only they cancel it")
    wanted = (await read_json(request)).get("wish")
    if wanted is not None and wanted not in jobs.WISHES:
        raise HttpError(400, f"wish: {', '.join(jobs.WISHES)}, or null to take it back")
    if wanted is not None and row["ended_at"] is not None:
        raise HttpError(409, f"job {row['job_id']} is over already")
    await tracker.write(jobs.set_wish, row["key"], wanted)
    tracker.open_wishes = await tracker.read(jobs.count_wishes)
    if row["sweep"] is not None:
        tracker.sweeps.wake(row["sweep"])
    return answer({"wish": wanted})


@api.post("/api/jobs/{key:int}/retry", answer=Retried)
async def retry(request: Request) -> Response:
    """Trials that failed in it go back into the queue."""
    tracker, row = tracker_of(request), await readable_job(request)
    sweep = None if row["sweep"] is None else await tracker.read(sweeps.by_key, row["sweep"])
    if sweep is None:
        raise HttpError(409, f"job {row['job_id']} ran no trials of a sweep")
    must_write(request, caller_of(request), sweep["entity"])
    numbers = await tracker.read(jobs.failed_trials, row)
    if not numbers:
        raise HttpError(409, f"no trial of job {row['job_id']} has failed")
    try:
        await tracker.write(sweep_changes.retry, sweep["key"], numbers, time.time())
    except sweep_changes.Refused as error:
        raise HttpError(409, str(error)) from error
    tracker.sweeps.wake(sweep["key"])
    after = await tracker.read(sweep_json, sweep, time.time())
    # One that is silent for a lease takes nothing any more.
    heard = time.time() - leases.LEASE_SECONDS
    there = [agent for agent in after["agents"] if agent["heard_at"] > heard]
    return answer({"retried": len(numbers), "sweep": sweep["id"], "agents": len(there)})
