"""`wandb.alert`: a program wants somebody to know."""

from __future__ import annotations

import logging
import time

from runyard.server.runs import alerts, runs
from runyard.server.wandb_api.graphql.inputs import Arguments
from runyard.server.wandb_api.graphql.request import Refusal, Request, Source, must_write

log = logging.getLogger(__name__)


def mutations(request: Request) -> Source:
    async def notify(arguments: Arguments) -> Source:
        entity = request.entity(arguments)
        must_write(request, entity)
        project, run = arguments.text("projectName") or "", arguments.text("runName") or ""
        row = await request.tracker.read(runs.by_path, entity, project, run)
        if row is None:
            raise Refusal(f"no run {run[:100]} in {entity}/{project}")
        wait = arguments.get("waitDuration")
        alert = alerts.Alert(
            title=arguments.text("title") or "",
            text=arguments.text("text") or "",
            level=arguments.text("severity") or "INFO",
            # Clients count in milliseconds.
            wait_seconds=wait / 1000 if isinstance(wait, int | float) and 0 < wait < 2**53 else 0.0,
        )
        if await request.tracker.write(alerts.raise_alert, row["key"], alert, time.time()):
            log.warning("run %s/%s: %s alert: %r", project, run, alert.level, alert.title)
        return {"success": True}

    return {"notifyScriptableRunAlert": notify}
