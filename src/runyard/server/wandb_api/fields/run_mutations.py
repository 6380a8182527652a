"""Changes of runs that are not their own clients': deletion, stops, states."""

from __future__ import annotations

import time
from sqlite3 import Connection

from runyard.server.artifacts import visibility
from runyard.server.runs import runs
from runyard.server.sweeps.ledger import endings, trials
from runyard.server.wandb_api.graphql.inputs import Arguments
from runyard.server.wandb_api.graphql.request import Refusal, Request, Source, must_write, own_run
from runyard.server.wandb_api.graphql.run_ids import run_key

# What may become of a run by a word from outside, and from which states.
_BECOMES = {
    "pending": ("running", "failed", "crashed", "preempted", "pending"),
    "failed": ("pending", "running", "failed"),
}


def mutations(request: Request) -> Source:
    async def delete(arguments: Arguments) -> Source:
        row = await request.see(visibility.run, await run_key(request, arguments))
        # Gone is gone: a client that got no answer asks again, and what is somebody else's is
        # not told apart from what was never there.
        if row is not None:
            must_write(request, row["entity"])
            await request.tracker.trash_runs(
                request.caller,
                [row["key"]],
                with_artifacts=arguments.get("deleteArtifacts") is True,
            )
        return {"clientMutationId": None, "success": True}

    async def stop(arguments: Arguments) -> Source:
        row = await own_run(request, await run_key(request, arguments))
        await request.tracker.write(endings.ask_to_stop, row["key"], time.time())
        request.tracker.sweeps.quiet_periods.clear()  # Its agent, if it has one, is to hear of it.
        return {"clientMutationId": None, "success": True}

    async def update_state(arguments: Arguments) -> Source:
        row = await own_run(request, await run_key(request, arguments))
        state = arguments.text("state") or ""
        if await request.tracker.read(trials.by_run, row["key"]) is not None:
            raise Refusal(
                "the state of a sweep's run follows from its trial: `runyard retry` and `runyard "
                "cancel` change it"
            )
        if not await request.tracker.write(_change_state, row["key"], state, time.time()):
            raise Refusal(f"a run cannot go from {row['state']} to {state[:50]!r}")
        return {"success": True}

    return {"deleteRun": delete, "stopRun": stop, "updateRunState": update_state}


def _change_state(db: Connection, key: int, state: str, now: float) -> bool:
    row = runs.by_key(db, key)
    if row is None or row["state"] not in _BECOMES.get(state, ()):
        return False
    ended = now if state == "failed" else None
    runs.update(db, key, state=state, ended_at=ended, preempting=0, stop_asked=0)
    return True
