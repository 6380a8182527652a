"""What runyard's own agents say: here I am, give me a trial, it is alive, it has ended, I go."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from runyard.search.tasks import COMMAND_LINE, NUMBER
from runyard.server.api.sweep_json import trial_json
from runyard.server.http import arguments
from runyard.server.http.access import caller_of, own_sweep, tracker_of
from runyard.server.http.answers import (
    HttpError,
    answer,
    quick_answer,
    read_json,
    read_texts,
    whole_text,
)
from runyard.server.http.routes import Endpoint
from runyard.server.jobs import jobs
from runyard.server.people.api_keys import BEHIND_DOOR, JOB, RUN, handed_out
from runyard.server.people.permissions import RUNS, may_read
from runyard.server.processes.attempts import NoAttempt, read_usage
from runyard.server.store.database import LARGEST_KEY
from runyard.server.store.json_text import is_odd
from runyard.server.store.sql import Row
from runyard.server.sweeps.ledger import agents, leases, programs, sweeps
from runyard.server.sweeps.ledger.agents import NewAgent, NoAgent
from runyard.server.sweeps.ledger.claims import Handed
from runyard.server.sweeps.ledger.new_trials import OWN
from runyard.server.sweeps.policy.causes import CAUSES
from runyard.server.sweeps.policy.fitting import Refusal, Room
from runyard.server.sweeps.serving import heartbeats
from runyard.server.sweeps.serving.claim_queues import Answer, Plan
from runyard.server.tracking import going_back

_MOST_SLOTS = 10_000
_LONGEST_NAME = 200
# For so long an agent's key goes on after the agent.
_LAST_SECONDS = 600.0


async def begin_agent(request: Request) -> Response:
    row = await own_sweep(request)
    given = await read_texts(request)
    new = NewAgent(
        user=caller_of(request).key,
        kind=OWN,
        token=arguments.field(given, "token", str),
        host=arguments.field(given, "host", str),
        pid=arguments.field(given, "pid", int),
        slots=_slots(given) if given.get("slots") else 1,
        job=_named(given, "job"),
        node=_named(given, "node"),
    )
    agent = await tracker_of(request).sweeps.begin_agent(row["key"], new)
    return answer(
        {
            "agent": agent["key"],
            "lease_seconds": leases.LEASE_SECONDS,
            **await _key_for(request, agent, given),
        }
    )


async def _key_for(request: Request, agent: Row, given: Mapping[str, Any]) -> dict[str, str]:
    """A key for an agent that wants one, and for its programs."""
    caller, tracker = caller_of(request), tracker_of(request)
    if given.get("wants_key") is not True or not tracker.accounts.may_hand_out(caller):
        return {}
    kind, what = (JOB, f"job {agent['job']}") if agent["job"] else (RUN, "sweep agent")
    label = f"{what} on {agent['node'] or agent['host']}"
    made = await tracker.accounts.add_key(caller.name, handed_out(kind, label, BEHIND_DOOR))
    return {"key": made["key"]}


async def claim(request: Request) -> Response:
    """The next trial; with `wait`, answers when there is one, or at the sweep's end."""
    agent = await own_agent(request)
    tracker = tracker_of(request)
    queues = tracker.sweeps
    async with queues.queue(agent["sweep"]).door:
        given = await read_json(request)
        read_at = time.perf_counter()
        token = whole_text(arguments.field(given, "token", str))
        if tracker.open_wishes and await tracker.read(jobs.is_unwanted, agent):
            return answer({"do": "exit", "why": "its job is to be cancelled"})
        room = _room(given)
        if room is not None and (
            why := await tracker.read(programs.look_for_room, agent["sweep"], room)
        ):
            return answer(await _refused(request, agent["sweep"], room, why))
        wait = arguments.wait_seconds(str(given.get("wait") or 0))
        found = await queues.claim(agent["key"], token)
    if wait and found.handed is None and not found.is_over:
        found = await _while_connected(request, queues.claim(agent["key"], token, wait), found)
    if found.handed is None:
        return answer({"do": "exit" if found.is_over else "wait", "why": found.why})
    told = _handed(await queues.plan(agent["sweep"]), found.handed)
    # From the request's last byte to the answer on disk: what `benchmarks/handout.py` looks at.
    told.headers["Server-Timing"] = f"claim;dur={(time.perf_counter() - read_at) * 1e3:.3f}"
    return told


def _room(given: Mapping[str, Any]) -> Room | None:
    """Of an agent whose job has an end."""
    if given.get("seconds_left") is None:
        return None
    left = arguments.field(given, "seconds_left", (int, float))
    return Room(
        left=float(left),
        whole=float(arguments.field(given, "seconds_whole", (int, float))),
        has_begun=bool(given.get("has_begun")),
    )


async def _refused(request: Request, sweep: int, room: Room, why: Refusal) -> dict[str, Any]:
    """No trial begins there. An agent that has begun none yet says on its sweep why it goes."""
    told = {"do": "exit", "refusal": why, "why": "its job ends too soon for another trial"}
    if why == "too-long" and not room.has_begun:
        tracker = tracker_of(request)
        told["why"] = await tracker.write(programs.note_too_long, sweep, room, time.time())
        tracker.sweeps.wake(sweep)
    return told


async def renew(request: Request) -> Response:
    agent = await own_agent(request)
    given = await read_json(request)
    told = [one for one in arguments.field(given, "running", list) if isinstance(one, dict)]
    running = [
        (arguments.field(one, "trial", int), arguments.field(one, "attempt", int)) for one in told
    ]
    usages = (read_usage(one.get("usage")) for one in told)
    renewed = await heartbeats.renew(
        tracker_of(request).sweeps,
        agent["key"],
        agent["sweep"],
        running,
        slots=_slots(given) if given.get("slots") else None,
        usage={which: one for which, one in zip(running, usages, strict=True) if one},
    )
    return quick_answer(
        {
            "stop": [
                {"trial": stop.trial, "attempt": stop.attempt, "why": stop.why}
                for stop in renewed.stops
            ],
            "over": [asdict(over) for over in renewed.over],
            "lease_seconds": leases.LEASE_SECONDS,
            **await _key_for(request, agent, given),
        }
    )


async def end_attempt(request: Request) -> Response:
    agent = await own_agent(request)
    given = await read_json(request)
    cause = None if given.get("cause") is None else arguments.field(given, "cause", str)
    if cause is not None and cause not in CAUSES:
        raise HttpError(400, f"{cause[:50]!r} is no cause: {', '.join(CAUSES)}")
    now = time.time()
    try:
        told = await tracker_of(request).write(
            _end_attempt,
            agent["key"],
            arguments.field(given, "trial", int),
            arguments.field(given, "attempt", int),
            exit_code=arguments.field(given, "exit_code", int),
            cause=cause,
            ended_at=min(float(arguments.field(given, "ended_at", (int, float))), now),
            now=now,
            saved=bool(given.get("saved")),
            usage=read_usage(given.get("usage")),
        )
    except (NoAgent, NoAttempt) as error:
        raise HttpError(404, str(error)) from error
    tracker_of(request).sweeps.wake(agent["sweep"])
    return answer(told)


def _slots(given: Mapping[str, Any]) -> int:
    slots: int = arguments.field(given, "slots", int)
    return min(max(1, slots), _MOST_SLOTS)


async def go_back(request: Request) -> Response:
    """An attempt goes on from a checkpoint: what came after it is put aside."""
    agent = await own_agent(request)
    given = await read_json(request)
    told = given.get("saved_at")
    saved_at = None if told is None else arguments.field(given, "saved_at", (int, float))
    rows = given.get("rows") or []
    if not isinstance(rows, list) or not all(isinstance(line, str) for line in rows):
        raise HttpError(400, "rows: a list of texts, each a row as JSON")
    owed_since = await going_back.go_back(
        tracker_of(request),
        agent["key"],
        arguments.field(given, "trial", int),
        arguments.field(given, "attempt", int),
        saved_at=saved_at,
        rows=rows,
    )
    return answer({"owed_since": owed_since})


async def leave(request: Request) -> Response:
    agent = await own_agent(request)
    given = await read_texts(request)
    why = None if given.get("why") is None else arguments.field(given, "why", str)
    await tracker_of(request).write(agents.leave, agent["key"], why, time.time())
    tracker_of(request).sweeps.wake(agent["sweep"])
    if given.get("leaves_key") is True:
        # Clients of its programs may still be sending their last rows.
        await tracker_of(request).accounts.end_key(
            caller_of(request).key_id, time.time() + _LAST_SECONDS
        )
    return answer({})


async def own_agent(request: Request) -> Row:
    """The agent of the address, if the caller may write to its sweep."""
    key: int = request.path_params["agent"]
    try:
        agent = await tracker_of(request).sweeps.agent(min(key, LARGEST_KEY))
    except NoAgent as error:
        raise HttpError(404, str(error)) from error
    if not may_read(caller_of(request), agent["entity"]):
        raise HttpError(404, f"there is no agent {key}")
    if not tracker_of(request).accounts.may_write(caller_of(request), agent["entity"]):
        raise HttpError(403, f"the sweeps of {agent['entity']!r} are not yours to write to")
    return agent


async def _while_connected(request: Request, asked: Any, nothing: Answer) -> Answer:
    """Wait for the answer for as long as whoever asked is there to hear it."""
    claiming = asyncio.ensure_future(asked)
    gone = asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait({claiming, gone}, return_when=asyncio.FIRST_COMPLETED)
        found: Answer = claiming.result() if claiming.done() else nothing
        return found
    finally:
        claiming.cancel()
        gone.cancel()


def _named(given: dict[str, Any], name: str) -> str | None:
    return arguments.field(given, name, str)[:_LONGEST_NAME] if given.get(name) else None


def _handed(plan: Plan, handed: Handed) -> Response:
    trial = trial_json(handed.trial, plan.rules)
    return (answer if is_odd(handed.trial["settings"]) else quick_answer)(
        {
            "do": "run",
            "trial": trial,
            "attempt": handed.attempt,
            "run": {
                "key": handed.run["key"],
                "id": handed.run["id"],
                "name": handed.run["name"],
                "entity": handed.run["entity"],
                "project": handed.run["project_name"],
                "folder": handed.run["folder"],
                "steps": handed.steps,
            },
            "command": None if plan.sweep.command is None else list(plan.sweep.command),
            "program": plan.sweep.program,
            "args": _arguments(plan, trial["values"]),
            "task": _task(plan, trial["values"]),
            "sweep": plan.id,
            # The trials of a list are programs of their own, each in the place that it names.
            "is_search": not plan.sweep.options.tasks,
        }
    )


def _arguments(plan: Plan, settings: dict[str, Any]) -> dict[str, Any]:
    """What the program is given. A task's values stand in its command line, and what is given
    here cannot be changed by the program's own `wandb.config`."""
    if plan.sweep.options.tasks:
        return {COMMAND_LINE: settings[COMMAND_LINE]}
    return settings


def _task(plan: Plan, settings: dict[str, Any]) -> dict[str, Any] | None:
    """Of a trial that is a line of a list: what its job log says of it, and where that is."""
    if not plan.sweep.options.tasks:
        return None
    return {
        "number": settings[NUMBER],
        "command_line": settings[COMMAND_LINE],
        "log": plan.sweep.options.job_log,
    }


def _end_attempt(
    connection: sqlite3.Connection, /, agent: int, number: int, attempt: int, **how: Any
) -> dict[str, Any]:
    trial = agents.end_attempt(connection, agent, number, attempt, **how)
    rules = sweeps.rules_of(sweeps.get(connection, trial["sweep"]))
    return {"trial": trial_json(trial, rules)}


ENDPOINTS = [
    Endpoint("POST", "/api/sweeps/{key:int}/agents", begin_agent, RUNS),
    Endpoint("POST", "/api/agents/{agent:int}/claim", claim, RUNS),
    Endpoint("POST", "/api/agents/{agent:int}/renew", renew, RUNS),
    Endpoint("POST", "/api/agents/{agent:int}/rewind", go_back, RUNS),
    Endpoint("POST", "/api/agents/{agent:int}/ends", end_attempt, RUNS),
    Endpoint("POST", "/api/agents/{agent:int}/leave", leave, RUNS),
]
