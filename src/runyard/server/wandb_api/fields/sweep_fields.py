"""Sweeps as GraphQL fields: what W&B's commands make and change, and what its public API reads."""

from __future__ import annotations

import json
from functools import lru_cache
from sqlite3 import Connection

import yaml

from runyard.server.artifacts import visibility
from runyard.server.store.sql import Row
from runyard.server.sweeps.ledger import sweep_changes, sweeps, trials
from runyard.server.wandb_api.fields import agent_fields, listing_fields, run_fields
from runyard.server.wandb_api.graphql import pages
from runyard.server.wandb_api.graphql.inputs import SWEEP, Arguments, opaque
from runyard.server.wandb_api.graphql.request import Request, Source


def in_project(request: Request, entity: str, project: str, key: int | None) -> Source:
    tracker = request.tracker

    async def sweep(arguments: Arguments) -> Source | None:
        name = arguments.text("sweepName") or arguments.text("name") or ""
        row = await tracker.read(sweeps.by_path, entity, project, name)
        return None if row is None else sweep_fields(request, row)

    async def every(arguments: Arguments) -> Source:
        size, after = pages.page_size(arguments), pages.cursor_number(arguments)
        if key is None:
            return pages.connection((), total=0)
        rows = await tracker.read(sweeps.of_project, key, after, size + 1)
        edges = [pages.edge(row["key"], sweep_fields(request, row)) for row in rows]
        return pages.page(edges, size, total)

    async def total(_arguments: Arguments) -> int:
        return 0 if key is None else await tracker.read(sweeps.count, key)

    return {"sweep": sweep, "sweeps": every, "totalSweeps": total}


def sweep_fields(request: Request, row: Row) -> Source:
    """A sweep; what costs more than its row is looked up when it is asked for."""
    tracker = request.tracker
    rules = sweeps.rules_of(row)

    async def run_count(_arguments: Arguments) -> int:
        listed = listing_fields.in_project(request, row["project"])
        count: int = await listed["runCount"](Arguments(filters=_runs_of(row)))
        return count

    async def runs(arguments: Arguments) -> Source:
        listed = listing_fields.in_project(request, row["project"])["runs"]
        question = Arguments({"order": "+created_at", **arguments, "filters": _runs_of(row)})
        answer: Source = await listed(question)
        if rules.draws or arguments.get("first") is not None:
            return answer
        # A controller on somebody's machine needs all of them, and knows no pages.
        edges = list(answer["edges"])
        while answer["pageInfo"]["hasNextPage"]:
            after = answer["pageInfo"]["endCursor"]
            answer = await listed(Arguments({**question, "after": after}))
            edges += answer["edges"]
        return pages.connection(edges, total=len(edges))

    async def prior_runs(_arguments: Arguments) -> Source:
        edges = []
        for key in json.loads(row["prior"]):
            run = await request.see(visibility.run, key)
            if run is not None:
                edges.append(pages.edge(key, run_fields.run_fields(request, run)))
        return pages.connection(edges)

    async def scheduler(_arguments: Arguments) -> str | None:
        return None if rules.draws else await tracker.read(sweep_changes.scheduled_runs, row)

    return {
        "__typename": "Sweep",
        "id": opaque(SWEEP, row["key"]),
        "name": row["id"],
        "displayName": None if row["name"] == row["id"] else row["name"],
        "description": row["description"],
        "method": row["method"],
        "state": word_of(row),
        "config": as_yaml(row["config"]),
        "controller": row["controller"],
        "scheduler": scheduler,
        # The run that a scheduler on somebody's machine keeps its log in.
        "controllerRunName": f"{row['id']}-scheduler",
        "createdAt": pages.timestamp(row["created_at"]),
        "updatedAt": pages.timestamp(row["updated_at"]),
        "heartbeatAt": pages.timestamp(row["updated_at"]),
        "earlyStopJobRunning": False,
        "bestLoss": request.reads(_best_value, row),
        "runCount": run_count,
        "runCountExpected": sweeps.expected(row, rules),
        "runs": runs,
        "priorRuns": prior_runs,
        "project": {
            "__typename": "Project",
            "id": f"{row['entity']}/{row['project_name']}",
            "name": row["project_name"],
            "entityName": row["entity"],
            "entity": {"id": row["entity"], "name": row["entity"]},
        },
        **agent_fields.in_sweep(request, row),
    }


def word_of(row: Row) -> str:
    if row["state"] == "running" and row["started_at"] is None:
        return "PENDING"
    return str(row["state"]).upper()


@lru_cache(maxsize=64)
def as_yaml(config: str) -> str:
    """A sweep's config as clients read it: in YAML's older rules, 1e-05 would be a text."""
    return yaml.safe_dump(json.loads(config), sort_keys=False, allow_unicode=True)


def _best_value(db: Connection, row: Row) -> float | None:
    aims = sweeps.rules_of(row).aims
    best = trials.best(db, row["key"])
    if best is None or best["score"] is None or not aims:
        return None
    return aims[0].lowered(best["score"])  # Turned round twice, it is as it was logged.


def _runs_of(row: Row) -> str:
    return json.dumps({"sweep": row["id"]})
