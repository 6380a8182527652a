"""Deletes a run: its rows, its files, and the room they took."""

from __future__ import annotations

import asyncio
import time

from runyard.server.store import deletion
from runyard.server.tracker import Tracker


async def delete_run(tracker: Tracker, key: int) -> bool:
    """Rows first, then files: cut short in between, the next start removes the files."""
    if not await tracker.write(deletion.delete_run, key, time.time()):
        return False
    await asyncio.to_thread(tracker.uploads.remove_run, key)
    tracker.vacuum.note()
    return True
