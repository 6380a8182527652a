"""runyard's own API of sweeps: made, shown, steered. What agents say is in `agent_api`."""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from runyard.reading import problems
from runyard.search.budget import BadBudget, parse_budget
from runyard.server.api.sweep_json import sweep_json, times_left, trial_json, work_json
from runyard.server.http import arguments
from runyard.server.http.access import (
    caller_of,
    meant,
    must_write,
    own_sweep,
    readable_sweep,
    tracker_of,
)
from runyard.server.http.answers import HttpError, answer
from runyard.server.http.routes import Endpoints
from runyard.server.people.permissions import RUNS, Entities, readable
from runyard.server.store.names import BadName, check_project
from runyard.server.store.sql import Row
from runyard.server.sweeps.ledger import sweep_changes, sweeps, trials
from runyard.server.sweeps.policy.lifecycle import STATES
from runyard.server.sweeps.serving.creation import BadPrior, BadSweep, new_sweep, read_file
from runyard.shapes.sweeps import CreatedSweep, Problem, Sweep, Trial, Work

api = Endpoints("sweeps")


@dataclass
class NewSweep:
    """`config` is the sweep's file, as text or as an object."""

    config: Any = None
    project: str | None = None
    entity: str | None = None
    folder: str | None = None
    name: str | None = None
    prior_runs: list[str] = field(default_factory=list)
    seed: int | None = None


@dataclass
class SweepState:
    state: str


@dataclass
class SweepCap:
    run_cap: int | None = None


@dataclass
class NewBudget:
    """`200 gpu-hours`, or `12 hours`."""

    budget: str | None = None


@dataclass
class TrialsToRetry:
    trials: list[int] | None = None


@api.post("/api/sweeps", body=NewSweep, answer=CreatedSweep)
async def create_sweep(request: Request) -> Response:
    """Make a sweep of a file's text or data."""
    body = await arguments.read(request, NewSweep)
    if not isinstance(body.config, str | dict):
        raise HttpError(400, "config is missing: the sweep's file, as text or as an object")
    try:
        # Beside the event loop: a long list of values takes its time.
        file = await asyncio.to_thread(read_file, body.config)
    except BadSweep as error:
        return answer({"error": str(error), "problems": _problems(error.problems)}, 400)
    caller = caller_of(request)
    entity = body.entity or file.sweep.entity or caller.name
    project = body.project or file.sweep.project or "uncategorized"
    try:
        check_project(entity)
        check_project(project)
    except BadName as error:
        raise HttpError(400, str(error)) from error
    must_write(request, caller, entity)
    if body.seed is not None and not 0 <= body.seed < 2**32:
        raise HttpError(400, "seed: a whole number from 0 to 4294967295")
    try:
        row = await tracker_of(request).write(
            new_sweep,
            file,
            entity=entity,
            project=project,
            user=caller.key,
            name=body.name,
            folder=body.folder,
            seed=secrets.randbits(31) if body.seed is None else body.seed,
            prior=body.prior_runs,
            now=time.time(),
        )
    except BadPrior as error:
        raise HttpError(400, str(error)) from error
    sweep = await tracker_of(request).read(sweep_json, row, time.time())
    return answer({**sweep, "warnings": _problems(file.warnings)})


def _problems(listed: Iterable[problems.Problem]) -> list[Problem]:
    return [
        {"path": list(problem.path), "message": problem.message, "mend": problem.mend}
        for problem in listed
    ]


@api.get("/api/sweeps", RUNS, query={"project": str, "open": int, "limit": int}, answer=list[Sweep])
async def list_sweeps(request: Request) -> Response:
    """Sweeps, the newest first."""
    query = request.query_params
    rows = await tracker_of(request).read(
        _list,
        query.get("project"),
        arguments.number(request, "limit"),
        readable(caller_of(request)),
        time.time(),
        open_only=query.get("open") == "1",
    )
    return answer(rows)


@api.get("/api/sweep", RUNS, query={"name": str}, answer=Sweep)
async def find_sweep(request: Request) -> Response:
    """One sweep by what a person types."""
    row = await meant(request, "sweep", sweeps.by_words, readable(caller_of(request)))
    return answer(await tracker_of(request).read(sweep_json, row, time.time()))


@api.get("/api/sweeps/{key:int}", RUNS, answer=Sweep)
async def show_sweep(request: Request) -> Response:
    """A sweep with its counts, its best trial and its end."""
    row = await readable_sweep(request)
    return answer(await tracker_of(request).read(sweep_json, row, time.time()))


@api.get(
    "/api/sweeps/{key:int}/trials", RUNS, query={"state": str, "last": int}, answer=list[Trial]
)
async def list_trials(request: Request) -> Response:
    """Its trials."""
    row = await readable_sweep(request)
    state = request.query_params.get("state")
    if state is not None and state not in STATES:
        raise HttpError(400, f"{state[:50]!r} is no state of a trial: {', '.join(STATES)}")
    last = arguments.number(request, "last")
    return answer(await tracker_of(request).read(_trials, row, state, last))


@api.get("/api/sweeps/{key:int}/work", RUNS, answer=Work)
async def list_work(request: Request) -> Response:
    """Its agents, also those that left, and every attempt with what it used."""
    row = await readable_sweep(request)
    return answer(await tracker_of(request).read(work_json, row["key"]))


@api.post("/api/sweeps/{key:int}/state", body=SweepState, answer=Sweep)
async def change_state(request: Request) -> Response:
    """running, paused, finished (what runs goes on) or canceled (it ends)."""
    row = await own_sweep(request)
    state = (await arguments.read_as_sent(request, SweepState)).state
    return await _changed(request, row, sweep_changes.set_state, state)


@api.post("/api/sweeps/{key:int}/cap", body=SweepCap, answer=Sweep)
async def change_cap(request: Request) -> Response:
    """How many trials there may be; null for no limit."""
    row = await own_sweep(request)
    cap = (await arguments.read_as_sent(request, SweepCap)).run_cap
    if cap is not None and cap < 1:
        raise HttpError(400, "run_cap is at least 1; null takes it away")
    return await _changed(request, row, sweep_changes.set_cap, cap)


@api.post("/api/sweeps/{key:int}/budget", body=NewBudget, answer=Sweep)
async def change_budget(request: Request) -> Response:
    """What it may use; null for no limit."""
    row = await own_sweep(request)
    text = (await arguments.read_as_sent(request, NewBudget)).budget
    try:
        budget = None if text is None else str(parse_budget(text))
    except BadBudget as error:
        raise HttpError(400, f"budget: {error}; {error.mend}") from error
    return await _changed(request, row, sweep_changes.set_budget, budget)


@api.post("/api/sweeps/{key:int}/retry", body=TrialsToRetry, answer=Sweep)
async def retry(request: Request) -> Response:
    """Run failed trials again: those named, or all."""
    row = await own_sweep(request)
    numbers = (await arguments.read_as_sent(request, TrialsToRetry)).trials
    return await _changed(request, row, sweep_changes.retry, numbers)


@api.delete("/api/sweeps/{key:int}", answer={"deleted": str})
async def delete(request: Request) -> Response:
    """Delete a sweep that nobody has worked on."""
    row = await own_sweep(request)
    tracker = tracker_of(request)
    try:
        await tracker.write(sweep_changes.delete, row["key"], time.time())
    except sweep_changes.Refused as error:
        raise HttpError(409, str(error)) from error
    tracker.sweeps.wake(row["key"])
    return answer({"deleted": row["id"]})


async def _changed(request: Request, row: Row, change: Any, value: Any) -> Response:
    tracker = tracker_of(request)
    try:
        await tracker.write(change, row["key"], value, time.time())
    except sweep_changes.Refused as error:
        raise HttpError(409, str(error)) from error
    tracker.sweeps.wake(row["key"])
    return await show_sweep(request)


def _list(
    connection: sqlite3.Connection,
    project: str | None,
    limit: int | None,
    entities: Entities | None,
    now: float,
    *,
    open_only: bool,
) -> list[Sweep]:
    rows = sweeps.newest(connection, project, limit, entities, open_only=open_only)
    return [sweep_json(connection, row, now) for row in rows]


def _trials(
    connection: sqlite3.Connection, row: Row, state: str | None, last: int | None
) -> list[Trial]:
    rules = sweeps.rules_of(row)
    left = times_left(connection, row, time.time())
    return [
        trial_json(trial, rules, left.get(trial["number"]))
        for trial in trials.of_sweep(connection, row["key"], state, last)
    ]
