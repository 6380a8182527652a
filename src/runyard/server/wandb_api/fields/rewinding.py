"""Rewinding: a run goes on from an earlier step, and what came after it is put aside."""

from __future__ import annotations

import math
import time
from sqlite3 import Connection

from runyard.server.history import archives
from runyard.server.processes import clients
from runyard.server.runs import runs
from runyard.server.store.sql import Row
from runyard.server.wandb_api.fields.run_fields import upserted_fields
from runyard.server.wandb_api.graphql.inputs import Arguments
from runyard.server.wandb_api.graphql.request import Refusal, Request, Source, must_write


def mutations(request: Request) -> Source:
    async def rewind_run(arguments: Arguments) -> Source:
        entity = request.entity(arguments)
        project = arguments.text("projectName") or "uncategorized"
        run = arguments.text("runName") or ""
        must_write(request, entity)
        metric = arguments.text("metricName") or "_step"
        if metric != "_step":
            raise Refusal(f"a run is rewound by _step, not by {metric[:100]}")
        step = arguments.get("metricValue")
        if isinstance(step, bool) or not isinstance(step, int | float) or not math.isfinite(step):
            raise Refusal("metricValue is not a step")
        row = await request.tracker.read(runs.by_path, entity, project, run)
        if row is not None:
            rewind = archives.Rewind(
                row["key"], lambda steps, _times: steps > step, time.time(), keeps_own=False
            )
            await request.tracker.transfer(row["key"], rewind)
            key_id = request.caller.key_id
            row = await request.tracker.write(_go_on, row["key"], key_id, time.time())
        if row is None:
            raise Refusal(f"no run {run[:100]} in {entity}/{project}")
        return {"rewoundRun": await request.tracker.read(upserted_fields, row)}

    return {"rewindRun": rewind_run}


def _go_on(db: Connection, key: int, key_id: str, now: float) -> Row | None:
    """A process goes on from the step that the run was rewound to."""
    row = runs.by_key(db, key)
    if row is None:
        return None
    # Up to 0.19 at least, who rewinds says nothing else before its rows come.
    clients.begin(db, row["key"], "live", key_id=key_id, now=now)
    runs.update(
        db,
        row["key"],
        state="running",
        preempting=0,
        heartbeat_at=now,
        exit_code=None,
        ended_at=None,
    )
    return runs.by_key(db, row["key"])
