"""W&B's own agents as GraphQL fields: they come, beat, and are told what to do."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from runyard.server.store.sql import Row
from runyard.server.sweeps.ledger import agents, sweeps
from runyard.server.sweeps.ledger.agents import NewAgent, NoAgent
from runyard.server.sweeps.serving import heartbeats
from runyard.server.wandb_api.fields import run_fields
from runyard.server.wandb_api.graphql import pages
from runyard.server.wandb_api.graphql.inputs import AGENT, Arguments, key_of, opaque
from runyard.server.wandb_api.graphql.request import Refusal, Request, Source, must_write

_EXIT: Mapping[str, Any] = {"type": "exit"}


def mutations(request: Request) -> Source:
    async def create(arguments: Arguments) -> Source:
        entity = request.entity(arguments)
        project, name = arguments.text("projectName") or "", arguments.text("sweep") or ""
        row = await request.tracker.read(sweeps.by_path, entity, project, name)
        if row is None or not request.may_read(entity):
            raise Refusal(f"there is no sweep {entity}/{project}/{name[:50]}")
        must_write(request, entity)
        host = (arguments.text("host") or "")[:255]
        new = NewAgent(request.caller.key, "stock", host)
        agent = await request.tracker.sweeps.begin_agent(row["key"], new)
        return {"agent": {"__typename": "Agent", "id": opaque(AGENT, agent["key"])}}

    async def heartbeat(arguments: Arguments) -> Source:
        named = arguments.text("id") or ""
        commands = await _commands(request, key_of(AGENT, named), _alive(arguments))
        return {"agent": {"__typename": "Agent", "id": named}, "commands": json.dumps(commands)}

    return {"createAgent": create, "agentHeartbeat": heartbeat}


async def _commands(request: Request, agent: int, alive: list[str]) -> list[Mapping[str, Any]]:
    """At most one: an agent inside a program looks at the first alone."""
    try:
        row = await request.tracker.sweeps.agent(agent)
        if not request.may_write(row["entity"]):
            raise NoAgent
        command = await heartbeats.heartbeat(
            request.tracker.sweeps, agent, alive, request.tracker.started_at
        )
    except NoAgent:
        # The sweep was deleted. Newer agents leave by themselves at a 404, older ones die of it:
        # this all of them understand, once their runs are through.
        return [] if alive else [_EXIT]
    if command is None:
        return []
    if command.type in ("stop", "exit"):
        return [{"type": command.type, "run_id": command.run_id, "logs": []}]
    return [
        {
            "type": command.type,
            "run_id": command.run_id,
            "args": command.args or {},
            "program": command.program,
            "logs": [],
        }
    ]


def _alive(arguments: Arguments) -> list[str]:
    try:
        states = json.loads(arguments.text("runState") or "{}")
    except (ValueError, RecursionError) as error:
        raise Refusal(f"runState is not JSON: {error}") from error
    if not isinstance(states, dict):
        raise Refusal("runState is not an object")
    return [run_id for run_id, is_alive in states.items() if is_alive]


def in_sweep(request: Request, sweep: Row) -> Source:
    async def every(_arguments: Arguments) -> Source:
        rows = await request.tracker.read(agents.of_sweep, sweep["key"])
        return pages.connection(pages.edge(row["key"], agent_fields(request, row)) for row in rows)

    async def agent(arguments: Arguments) -> Source | None:
        key = key_of(AGENT, arguments.text("agentName") or "")
        row = await request.tracker.read(agents.by_key, key)
        is_here = row is not None and row["sweep"] == sweep["key"]
        return agent_fields(request, row) if row is not None and is_here else None

    return {"agents": every, "agent": agent}


def agent_fields(request: Request, row: Row) -> Source:
    async def total_runs(_arguments: Arguments) -> int:
        return len(await request.tracker.read(agents.runs_of, row["sweep"], row["key"]))

    async def worked_on(arguments: Arguments) -> Source:
        size, after = pages.page_size(arguments), pages.cursor_number(arguments) or 0
        rows = await request.tracker.read(agents.runs_of, row["sweep"], row["key"])
        shown = rows[after : after + size + 1]
        nodes = [run_fields.run_fields(request, run) for run in shown]
        edges = [pages.edge(after + place, node) for place, node in enumerate(nodes, 1)]
        return pages.page(edges, size)

    return {
        "__typename": "Agent",
        "id": opaque(AGENT, row["key"]),
        "name": opaque(AGENT, row["key"]),
        "host": row["host"],
        "state": "RUNNING" if agents.is_heard(row, time.time()) else "FINISHED",
        "createdAt": pages.timestamp(row["created_at"]),
        "heartbeatAt": pages.timestamp(row["heard_at"]),
        "totalRuns": total_runs,
        "runs": worked_on,
    }
