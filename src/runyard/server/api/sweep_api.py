"""runyard's own API of sweeps: made, shown, steered. What agents say is in `agent_api`."""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
import time
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from runyard.server.api.sweep_json import sweep_json, times_left, trial_json, work_json
from runyard.server.http import arguments
from runyard.server.http.access import caller_of, meant, own_sweep, readable_sweep, tracker_of
from runyard.server.http.answers import HttpError, answer, read_json, read_texts
from runyard.server.http.routes import Endpoint
from runyard.server.people.permissions import RUNS, Entities, readable
from runyard.server.store.names import BadName, check_project
from runyard.server.store.sql import Row
from runyard.server.sweeps.ledger import sweep_changes, sweeps, trials
from runyard.server.sweeps.policy.lifecycle import STATES
from runyard.server.sweeps.serving.creation import BadPrior, BadSweep, new_sweep, read_file


async def create_sweep(request: Request) -> Response:
    given = await read_texts(request)
    config = given.get("config")
    if not isinstance(config, str | dict):
        raise HttpError(400, "config is missing: the sweep's file, as text or as an object")
    try:
        # Beside the event loop: a long list of values takes its time.
        file = await asyncio.to_thread(read_file, config)
    except BadSweep as error:
        problems = [
            {"path": list(one.path), "message": one.message, "mend": one.mend}
            for one in error.problems
        ]
        return answer({"error": str(error), "problems": problems}, 400)
    caller = caller_of(request)
    entity = _text(given, "entity") or file.sweep.entity or caller.name
    project = _text(given, "project") or file.sweep.project or "uncategorized"
    try:
        check_project(entity)
        check_project(project)
    except BadName as error:
        raise HttpError(400, str(error)) from error
    if not tracker_of(request).accounts.may_write(caller, entity):
        raise HttpError(403, f"{entity!r} is not an entity that you may write to")
    seed = given.get("seed")
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**32:
        seed = None
    prior = arguments.texts(given, "prior_runs") if given.get("prior_runs") else []
    try:
        row = await tracker_of(request).write(
            new_sweep,
            file,
            entity=entity,
            project=project,
            user=caller.key,
            name=_text(given, "name"),
            folder=_text(given, "folder"),
            seed=seed if seed is not None else secrets.randbits(31),
            prior=prior,
            now=time.time(),
        )
    except BadPrior as error:
        raise HttpError(400, str(error)) from error
    warnings = [
        {"path": list(one.path), "message": one.message, "mend": one.mend} for one in file.warnings
    ]
    made = await tracker_of(request).read(sweep_json, row, time.time())
    return answer({**made, "warnings": warnings})


async def list_sweeps(request: Request) -> Response:
    given = request.query_params
    limit = arguments.number(given.get("limit"), "limit")
    found = await tracker_of(request).read(
        _list,
        given.get("project"),
        limit,
        readable(caller_of(request)),
        time.time(),
        open_only=given.get("open") == "1",
    )
    return answer(found)


async def find_sweep(request: Request) -> Response:
    row = await meant(request, "sweep", sweeps.by_words, readable(caller_of(request)))
    return answer(await tracker_of(request).read(sweep_json, row, time.time()))


async def show_sweep(request: Request) -> Response:
    row = await readable_sweep(request)
    return answer(await tracker_of(request).read(sweep_json, row, time.time()))


async def list_trials(request: Request) -> Response:
    row = await readable_sweep(request)
    state = request.query_params.get("state")
    if state is not None and state not in STATES:
        raise HttpError(400, f"{state[:50]!r} is no state of a trial: {', '.join(STATES)}")
    last = arguments.number(request.query_params.get("last"), "last")
    return answer(await tracker_of(request).read(_trials, row, state, last))


async def list_work(request: Request) -> Response:
    """Who worked on a sweep, in which job, and every attempt with what it used."""
    row = await readable_sweep(request)
    return answer(await tracker_of(request).read(work_json, row["key"]))


async def change_state(request: Request) -> Response:
    row = await own_sweep(request)
    state = arguments.field(await read_json(request), "state", str)
    return await _changed(request, row, sweep_changes.set_state, state)


async def change_cap(request: Request) -> Response:
    row = await own_sweep(request)
    given = await read_json(request)
    cap = None if given.get("run_cap") is None else arguments.field(given, "run_cap", int)
    if cap is not None and cap < 1:
        raise HttpError(400, "run_cap is at least 1; null takes it away")
    return await _changed(request, row, sweep_changes.set_cap, cap)


async def retry(request: Request) -> Response:
    row = await own_sweep(request)
    given = await read_json(request)
    numbers = None if given.get("trials") is None else arguments.field(given, "trials", list)
    if numbers is not None and not all(type(number) is int for number in numbers):
        raise HttpError(400, "trials is not a list of numbers")
    return await _changed(request, row, sweep_changes.retry, numbers)


async def delete(request: Request) -> Response:
    """Of a sweep that nobody has worked on, such as one whose jobs Slurm refused."""
    row = await own_sweep(request)
    tracker = tracker_of(request)
    try:
        await tracker.write(sweep_changes.delete, row["key"], time.time())
    except sweep_changes.Refused as error:
        raise HttpError(409, str(error)) from error
    tracker.sweeps.wake(row["key"])
    return answer({"deleted": row["id"]})


async def _changed(request: Request, row: Row, change: Any, given: Any) -> Response:
    tracker = tracker_of(request)
    try:
        await tracker.write(change, row["key"], given, time.time())
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
) -> list[dict[str, Any]]:
    rows = sweeps.newest(connection, project, limit, entities, open_only=open_only)
    return [sweep_json(connection, row, now) for row in rows]


def _trials(
    connection: sqlite3.Connection, row: Row, state: str | None, last: int | None
) -> list[dict[str, Any]]:
    rules = sweeps.rules_of(row)
    left = times_left(connection, row, time.time())
    return [
        trial_json(one, rules, left.get(one["number"]))
        for one in trials.of_sweep(connection, row["key"], state, last)
    ]


def _text(given: dict[str, Any], name: str) -> str | None:
    return None if given.get(name) is None else arguments.field(given, name, str)


ENDPOINTS = [
    Endpoint("GET", "/api/sweep", find_sweep, RUNS),
    Endpoint("GET", "/api/sweeps", list_sweeps, RUNS),
    Endpoint("POST", "/api/sweeps", create_sweep),
    Endpoint("GET", "/api/sweeps/{key:int}", show_sweep, RUNS),
    Endpoint("DELETE", "/api/sweeps/{key:int}", delete),
    Endpoint("GET", "/api/sweeps/{key:int}/trials", list_trials, RUNS),
    Endpoint("GET", "/api/sweeps/{key:int}/work", list_work, RUNS),
    Endpoint("POST", "/api/sweeps/{key:int}/state", change_state),
    Endpoint("POST", "/api/sweeps/{key:int}/cap", change_cap),
    Endpoint("POST", "/api/sweeps/{key:int}/retry", retry),
]
