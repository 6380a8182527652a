"""Changes of runs that are not their own clients': deletion, stops, states."""

from __future__ import annotations

import time
from collections.abc import Mapping
from sqlite3 import Connection
from typing import Any

from runyard.server.artifacts import visibility
from runyard.server.runs import runs
from runyard.server.sweeps.ledger import endings
from runyard.server.wandb_api.graphql.access_checks import must_write, own_run
from runyard.server.wandb_api.graphql.ids import RUN, key_of
from runyard.server.wandb_api.graphql.inputs import as_object, as_text
from runyard.server.wandb_api.graphql.request import Request
from runyard.server.wandb_api.graphql.source import Refusal, Source

# What may become of a run by a word from outside, and from which states.
_BECOMES = {
    "pending": ("running", "failed", "crashed", "preempted", "pending"),
    "failed": ("pending", "running", "failed"),
}


def mutations(request: Request) -> Source:
    async def delete(arguments: Mapping[str, Any]) -> Source:
        given = as_object(arguments, "input")
        row = await request.see(visibility.run, _run_key(given))
        # Gone is gone: a client that got no answer asks again, and what is somebody else's is
        # not told apart from what was never there.
        if row is not None:
            must_write(request, row["entity"])
            await request.tracker.delete_run(
                request.caller,
                row["key"],
                with_artifacts=given.get("deleteArtifacts") is True,
            )
        return {"clientMutationId": None, "success": True}

    async def stop(arguments: Mapping[str, Any]) -> Source:
        row = await own_run(request, _run_key(as_object(arguments, "input")))
        await request.tracker.write(endings.ask_to_stop, row["key"], time.time())
        request.tracker.sweeps.quiet_periods.clear()  # Its agent, if it has one, is to hear of it.
        return {"clientMutationId": None, "success": True}

    async def update_state(arguments: Mapping[str, Any]) -> Source:
        given = as_object(arguments, "input")
        row = await own_run(request, _run_key(given))
        state = as_text(given, "state") or ""
        if not await request.tracker.write(_change_state, row["key"], state, time.time()):
            raise Refusal(f"a run cannot go from {row['state']} to {state[:50]!r}")
        return {"success": True}

    return {"deleteRun": delete, "stopRun": stop, "updateRunState": update_state}


def _run_key(given: Mapping[str, Any]) -> int:
    return key_of(RUN, as_text(given, "id") or "")


def _change_state(db: Connection, key: int, state: str, now: float) -> bool:
    row = runs.by_key(db, key)
    if row is None or row["state"] not in _BECOMES.get(state, ()):
        return False
    ended = now if state == "failed" else None
    runs.update(db, key, state=state, ended_at=ended, preempting=0, stop_asked=0)
    return True
