"""Who is at work, where, on what: agents over all sweeps, and the machines that they are on."""

from __future__ import annotations

import json
import sqlite3
import time
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from runyard.server.api.page_api.page_answers import send_json
from runyard.server.http import arguments
from runyard.server.http.access import caller_of, tracker_of
from runyard.server.http.routes import Endpoints
from runyard.server.people.permissions import Entities, readable
from runyard.server.processes.attempts import usage_json
from runyard.server.runs.typed_names import of_entities
from runyard.server.store.sql import Row
from runyard.server.sweeps.ledger import leases
from runyard.shapes.sweeps import Agents

api = Endpoints("agents")

_COLUMNS = (
    "key", "kind", "host", "node", "job", "pid", "slots", "packing", "created_at", "heard_at",
    "left_at", "why", "sweep", "sweep_id", "sweep_name", "sweep_state", "entity", "project",
)  # fmt: skip
_MOST = 2_000


@api.get("/api/agents", query={"gone": int}, answer=Agents)
async def list_agents(request: Request) -> Response:
    """Agents at work over all sweeps, and their machines; the last `gone` that left."""
    gone = arguments.number(request, "gone") or 0
    tracker = tracker_of(request)
    revision = tracker.changes.revision
    agents = await tracker.read(
        _agents, readable(caller_of(request)), min(gone, _MOST), time.time()
    )
    return await send_json(request, {"revision": revision, **agents})


def _agents(
    connection: sqlite3.Connection, entities: Entities | None, gone: int, now: float
) -> dict[str, Any]:
    tests, owners = of_entities(entities)
    question = (
        "SELECT agents.*, sweeps.id AS sweep_id, sweeps.name AS sweep_name, "
        "sweeps.state AS sweep_state, projects.entity AS entity, projects.name AS project "
        "FROM agents JOIN sweeps ON sweeps.key = agents.sweep "
        f"JOIN projects ON projects.key = sweeps.project WHERE {' AND '.join(tests or '1')} "
    )
    # One that is silent for a lease has lost what it had.
    silent = now - leases.LEASE_SECONDS
    here = connection.execute(
        question + "AND left_at IS NULL AND heard_at > ? ORDER BY agents.key DESC LIMIT ?",
        [*owners, silent, _MOST],
    ).fetchall()
    left = connection.execute(
        question
        + "AND (left_at IS NOT NULL OR heard_at <= ?) ORDER BY agents.heard_at DESC LIMIT ?",
        [*owners, silent, gone],
    ).fetchall()
    work = _at_work(connection, [row["key"] for row in here])
    agents = [{**_agent_json(row), "running": work.get(row["key"], [])} for row in here]
    return {
        "agents": agents,
        "gone": [_agent_json(row) for row in left],
        "nodes": _nodes(agents),
    }


def _agent_json(row: Row) -> dict[str, Any]:
    return {name: row[name] for name in _COLUMNS}


def _at_work(connection: sqlite3.Connection, agents: list[int]) -> dict[int, list[dict[str, Any]]]:
    columns = ("number", "id", "name", "run", "attempt", "began_at")
    by_agent: dict[int, list[dict[str, Any]]] = {}
    for row in connection.execute(
        "SELECT trials.agent, trials.number, trials.id, trials.name, trials.run, trials.attempt, "
        "trials.began_at, attempts.usage FROM trials LEFT JOIN attempts "
        "ON attempts.run = trials.run AND attempts.number = trials.attempt "
        "WHERE trials.state = 'running' "
        "AND trials.agent IN (SELECT value FROM json_each(?)) ORDER BY trials.number",
        (json.dumps(agents),),
    ):
        by_agent.setdefault(row["agent"], []).append(
            {**{name: row[name] for name in columns}, "usage": usage_json(row["usage"])}
        )
    return by_agent


def _nodes(agents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The machines, by Slurm's name where it has one."""
    nodes: dict[str, dict[str, Any]] = {}
    for agent in agents:
        name = agent["node"] or agent["host"]
        node = nodes.setdefault(
            name, {"name": name, "agents": 0, "slots": 0, "running": 0, "jobs": []}
        )
        node["agents"] += 1
        node["slots"] += agent["slots"]
        node["running"] += len(agent["running"])
        if agent["job"] and agent["job"] not in node["jobs"]:
            node["jobs"].append(agent["job"])
    return sorted(nodes.values(), key=lambda node: str(node["name"]))
