"""Deletes a run: its rows, its files, its artifacts if wanted, and the room they took."""

from __future__ import annotations

import asyncio
import sqlite3
import time

from runyard.server.artifacts import artifact_deletion
from runyard.server.people.permissions import Caller
from runyard.server.tracker import Tracker
from runyard.server.tracking import deletion


async def delete_run(
    tracker: Tracker, caller: Caller, key: int, *, with_artifacts: bool = False
) -> bool:
    """Rows first, then files: cut short in between, the next start removes the files.

    What the run logged goes in slices before the run itself does; cut short there, it is shorter.
    """

    def delete(connection: sqlite3.Connection) -> tuple[bool, list[tuple[str, str]]]:
        freed = (
            artifact_deletion.delete_made_by(
                connection, key, lambda entity: tracker.may_write(caller, entity)
            )
            if with_artifacts
            else []
        )
        return deletion.delete_run(connection, key, time.time()), freed

    await tracker.transfer(key, deletion.Empty(key))
    was_there, freed = await tracker.write(delete)
    if was_there:
        await asyncio.to_thread(tracker.uploads.remove_run, key)
        tracker.vacuum.note()
    await tracker.blobs.free(tracker, freed)
    return was_there
