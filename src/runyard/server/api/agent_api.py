"""What runyard's own agents say: here I am, give me a trial, it is alive, it has ended, I go."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from dataclasses import asdict, dataclass, field
from sqlite3 import Connection
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from runyard.end_causes import CAUSES
from runyard.search.tasks import COMMAND_LINE, NUMBER
from runyard.server.api.sweep_json import trial_json
from runyard.server.http import arguments
from runyard.server.http.access import caller_of, own_sweep, tracker_of
from runyard.server.http.answers import (
    HttpError,
    answer,
    quick_answer,
    whole_text,
)
from runyard.server.http.routes import Endpoints
from runyard.server.jobs import jobs
from runyard.server.people.api_keys import BEHIND_DOOR, JOB, RUN, handed_out
from runyard.server.people.permissions import RUNS, may_read
from runyard.server.processes.attempts import NoAttempt, read_usage
from runyard.server.store.database import LARGEST_KEY
from runyard.server.store.json_text import is_odd
from runyard.server.store.sql import Row
from runyard.server.sweeps.ledger import agents, claims, leases, programs
from runyard.server.sweeps.ledger.agents import NoAgent
from runyard.server.sweeps.ledger.claims import Handed
from runyard.server.sweeps.ledger.new_trials import OWN
from runyard.server.sweeps.policy.fitting import Refusal, Room
from runyard.server.sweeps.serving import end_and_claim, heartbeats
from runyard.server.sweeps.serving.claim_queues import Answer, Plan
from runyard.server.sweeps.serving.end_and_claim import NextClaim
from runyard.server.tracking import going_back
from runyard.shapes.sweeps import Begun, Claimed, Renewed, Trial

api = Endpoints("agents")

_MOST_SLOTS = 10_000
_LONGEST_NAME = 200
_LONGEST_PACKING = 1_000
# For so long an agent's key goes on after the agent.
_LAST_SECONDS = 600.0


@dataclass
class NewAgent:
    token: str
    host: str
    pid: int
    slots: int = 1
    job: str | None = None
    node: str | None = None
    wants_key: bool = False


@dataclass
class Claim:
    token: str
    wait: float = 0.0
    seconds_left: float | None = None
    seconds_whole: float | None = None
    has_begun: bool = False


@dataclass
class HeldAttempt:
    trial: int
    attempt: int
    usage: Any = None


@dataclass
class Renewal:
    running: list[Any]
    slots: int | None = None
    packing: str | None = None
    wants_key: bool = False


@dataclass
class Rewind:
    trial: int
    attempt: int
    saved_at: float | None = None
    rows: list[str] = field(default_factory=list)


@dataclass
class TrialEnd:
    trial: int
    attempt: int
    exit_code: int
    ended_at: float
    cause: str | None = None
    saved: bool = False
    usage: Any = None
    claim: dict[str, Any] | None = None


@dataclass
class Leaving:
    why: str | None = None
    leaves_key: bool = False


@api.post("/api/sweeps/{key:int}/agents", RUNS, body=NewAgent, answer=Begun)
async def begin_agent(request: Request) -> Response:
    """An agent comes."""
    row = await own_sweep(request)
    body = await arguments.read(request, NewAgent)
    new = agents.NewAgent(
        user=caller_of(request).key,
        kind=OWN,
        token=body.token,
        host=body.host,
        pid=body.pid,
        slots=_within_limits(body.slots),
        job=(body.job or "")[:_LONGEST_NAME] or None,
        node=(body.node or "")[:_LONGEST_NAME] or None,
    )
    agent = await tracker_of(request).sweeps.begin_agent(row["key"], new)
    return answer(
        {
            "agent": agent["key"],
            "lease_seconds": leases.LEASE_SECONDS,
            **await _key_for(request, agent, wanted=body.wants_key),
        }
    )


async def _key_for(request: Request, agent: Row, *, wanted: bool) -> dict[str, str]:
    """A key for an agent that wants one, and for its programs."""
    caller, tracker = caller_of(request), tracker_of(request)
    if not wanted or not tracker.accounts.may_hand_out(caller):
        return {}
    kind, what = (JOB, f"job {agent['job']}") if agent["job"] else (RUN, "sweep agent")
    label = f"{what} on {agent['node'] or agent['host']}"
    made = await tracker.accounts.add_key(caller.name, handed_out(kind, label, BEHIND_DOOR))
    return {"key": made["key"]}


@api.post("/api/agents/{agent:int}/claim", RUNS, body=Claim, answer=Claimed)
async def claim(request: Request) -> Response:
    """Take the next trial; waits up to `wait` seconds for one. An agent whose job ends says what
    is left of it, and what there was.
    """
    agent = await own_agent(request)
    tracker = tracker_of(request)
    queues = tracker.sweeps
    async with queues.queue(agent["sweep"]).door:
        body = await arguments.read(request, Claim)
        read_at = time.perf_counter()
        if tracker.open_wishes and await tracker.read(jobs.is_unwanted, agent):
            return answer({"do": "exit", "why": "its job is to be cancelled"})
        room = _room(body)
        if room is not None and (
            why := await tracker.read(_look_for_room, agent["sweep"], body.token, room)
        ):
            return answer(await _refused(request, agent["sweep"], room, why))
        wait = arguments.wait_seconds(body.wait)
        claimed = await queues.claim(agent["key"], body.token)
    if wait and claimed.handed is None and not claimed.is_over:
        waiting = queues.claim(agent["key"], body.token, wait)
        claimed = await _while_connected(request, waiting, claimed)
    if claimed.handed is None:
        return answer({"do": "exit" if claimed.is_over else "wait", "why": claimed.why})
    is_odd_trial = is_odd(claimed.handed.trial["settings"])
    response = (answer if is_odd_trial else quick_answer)(
        _handed(await queues.plan(agent["sweep"]), claimed.handed)
    )
    # From the request's last byte to the answer on disk: what `benchmarks/handout.py` looks at.
    response.headers["Server-Timing"] = f"claim;dur={(time.perf_counter() - read_at) * 1e3:.3f}"
    return response


def _look_for_room(db: Connection, sweep: int, token: str, room: Room) -> Refusal | None:
    """Asked again, a claim has its trial, however little is left of the job meanwhile."""
    if claims.was_handed(db, sweep, token):
        return None
    return programs.look_for_room(db, sweep, room)


def _room(body: Claim) -> Room | None:
    """Of an agent whose job has an end."""
    if body.seconds_left is None:
        return None
    if body.seconds_whole is None:
        raise HttpError(400, "seconds_whole is missing")
    return Room(left=body.seconds_left, whole=body.seconds_whole, has_begun=body.has_begun)


async def _refused(request: Request, sweep: int, room: Room, why: Refusal) -> dict[str, Any]:
    """No trial begins there. An agent that has begun none yet says on its sweep why it goes."""
    refusal = {"do": "exit", "refusal": why, "why": "its job ends too soon for another trial"}
    if why == "too-long" and not room.has_begun:
        tracker = tracker_of(request)
        refusal["why"] = await tracker.write(programs.note_too_long, sweep, room, time.time())
        tracker.sweeps.wake(sweep)
    return refusal


@api.post("/api/agents/{agent:int}/renew", RUNS, body=Renewal, answer=Renewed)
async def renew(request: Request) -> Response:
    """These attempts are alive; answers which are to end, and which the client has ended."""
    agent = await own_agent(request)
    body = await arguments.read_as_sent(request, Renewal)
    held = [
        arguments.checked(attempt, HeldAttempt)
        for attempt in body.running
        if isinstance(attempt, dict)
    ]
    usages = {(attempt.trial, attempt.attempt): read_usage(attempt.usage) for attempt in held}
    renewed = await heartbeats.renew(
        tracker_of(request).sweeps,
        agent["key"],
        agent["sweep"],
        [(attempt.trial, attempt.attempt) for attempt in held],
        slots=_within_limits(body.slots) if body.slots else None,
        packing=" ".join(body.packing.split())[:_LONGEST_PACKING] if body.packing else None,
        usage={attempt: usage for attempt, usage in usages.items() if usage},
    )
    return quick_answer(
        {
            "stop": [
                {"trial": stop.trial, "attempt": stop.attempt, "why": stop.why}
                for stop in renewed.stops
            ],
            "over": [asdict(over) for over in renewed.over],
            "lease_seconds": leases.LEASE_SECONDS,
            **await _key_for(request, agent, wanted=body.wants_key),
        }
    )


@api.post(
    "/api/agents/{agent:int}/ends",
    RUNS,
    body=TrialEnd,
    answer={"trial": Trial, "claim": Claimed | None},
)
async def end_attempt(request: Request) -> Response:
    """An attempt has ended. With a claim, the answer may have the agent's next trial."""
    agent = await own_agent(request)
    body = await arguments.read_as_sent(request, TrialEnd)
    if body.cause is not None and body.cause not in CAUSES:
        raise HttpError(400, f"{body.cause[:50]!r} is no cause: {', '.join(CAUSES)}")
    tracker = tracker_of(request)
    # A job that is to be cancelled hears of it when it claims.
    wanted = None if tracker.open_wishes else _next_claim(body.claim)
    try:
        ended = await end_and_claim.end_attempt(
            tracker.sweeps,
            agent,
            wanted,
            number=body.trial,
            attempt=body.attempt,
            exit_code=body.exit_code,
            cause=body.cause,
            ended_at=min(body.ended_at, time.time()),
            saved=body.saved,
            usage=read_usage(body.usage),
        )
    except (NoAgent, NoAttempt) as error:
        raise HttpError(404, str(error)) from error
    next_trial = None
    if ended.next is not None and ended.plan is not None:
        next_trial = _handed(ended.plan, ended.next)
    return answer({"trial": trial_json(ended.trial, ended.rules), "claim": next_trial})


def _next_claim(claim: Any) -> NextClaim | None:
    """One that cannot be read must not cost the end: the agent asks again, and hears why."""
    if claim is None:
        return None
    try:
        checked = arguments.checked(claim, Claim)
        return NextClaim(whole_text(checked.token), _room(checked))
    except HttpError:
        return None


def _within_limits(slots: int) -> int:
    return min(max(1, slots), _MOST_SLOTS)


@api.post("/api/agents/{agent:int}/rewind", RUNS, body=Rewind, answer={"owed_since": float | None})
async def go_back(request: Request) -> Response:
    """An attempt goes on from a checkpoint.

    What came after the checkpoint is put aside.
    """
    agent = await own_agent(request)
    body = await arguments.read_as_sent(request, Rewind)
    owed_since = await going_back.go_back(
        tracker_of(request),
        agent["key"],
        body.trial,
        body.attempt,
        saved_at=body.saved_at,
        rows=body.rows,
    )
    return answer({"owed_since": owed_since})


@api.post("/api/agents/{agent:int}/leave", RUNS, body=Leaving)
async def leave(request: Request) -> Response:
    """An agent goes."""
    agent = await own_agent(request)
    body = await arguments.read(request, Leaving)
    await tracker_of(request).write(agents.leave, agent["key"], body.why, time.time())
    tracker_of(request).sweeps.wake(agent["sweep"])
    if body.leaves_key:
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


async def _while_connected(request: Request, claim: Awaitable[Answer], nothing: Answer) -> Answer:
    """Wait for the answer for as long as whoever asked is there to hear it."""
    claiming = asyncio.ensure_future(claim)
    gone = asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait({claiming, gone}, return_when=asyncio.FIRST_COMPLETED)
        return claiming.result() if claiming.done() else nothing
    finally:
        claiming.cancel()
        gone.cancel()


def _handed(plan: Plan, handed: Handed) -> dict[str, Any]:
    trial = trial_json(handed.trial, plan.rules)
    return {
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
        "warm": list(plan.sweep.options.warm),
        "claims_with_end": plan.claims_with_end,
    }


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
