"""`wandb.alert`: a program wants somebody to know."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any

from runyard.server.runs import alerts, runs
from runyard.server.wandb_api.graphql.access_checks import must_write
from runyard.server.wandb_api.graphql.inputs import as_object, as_text
from runyard.server.wandb_api.graphql.request import Request
from runyard.server.wandb_api.graphql.source import Refusal, Source

log = logging.getLogger(__name__)


def mutations(request: Request) -> Source:
    async def notify(arguments: Mapping[str, Any]) -> Source:
        given = as_object(arguments, "input")
        entity = request.entity(as_text(given, "entityName"))
        must_write(request, entity)
        project, run = as_text(given, "projectName") or "", as_text(given, "runName") or ""
        row = await request.tracker.read(runs.by_path, entity, project, run)
        if row is None:
            raise Refusal(f"no run {run[:100]} in {entity}/{project}")
        wait = given.get("waitDuration")
        alert = alerts.Alert(
            title=as_text(given, "title") or "",
            text=as_text(given, "text") or "",
            level=as_text(given, "severity") or "INFO",
            # Clients count in milliseconds.
            wait_seconds=wait / 1000 if isinstance(wait, int | float) and 0 < wait < 2**53 else 0.0,
        )
        if await request.tracker.write(alerts.raise_alert, row["key"], alert, time.time()):
            log.warning("run %s/%s: %s alert: %r", project, run, alert.level, alert.title)
        return {"success": True}

    return {"notifyScriptableRunAlert": notify}
