"""Alerts that a program sends with `run.alert`."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

from runyard.server.graphql.executor import Refusal, Source
from runyard.server.graphql.inputs import as_object, as_text
from runyard.server.graphql.request import Request
from runyard.server.store import alerts, runs

_LONGEST_TITLE, _LONGEST_TEXT = 1_000, 100_000


def mutations(request: Request) -> Source:
    async def notify(arguments: Mapping[str, Any]) -> Source:
        given = as_object(arguments, "input")
        entity = request.entity(as_text(given, "entityName"))
        project, run = as_text(given, "projectName") or "", as_text(given, "runName") or ""
        row = await request.tracker.read(runs.by_path, entity, project, run)
        if row is None:
            raise Refusal(f"no run {run} in {entity}/{project}")
        alert = alerts.Alert(
            title=(as_text(given, "title") or "")[:_LONGEST_TITLE],
            text=(as_text(given, "text") or "")[:_LONGEST_TEXT],
            level=as_text(given, "severity") or "INFO",
            wait_seconds=_milliseconds(given.get("waitDuration")) / 1000,
        )
        kept = await request.tracker.write(alerts.add, row["key"], alert, time.time())
        return {"success": kept}

    return {"notifyScriptableRunAlert": notify}


def _milliseconds(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) else 0.0
