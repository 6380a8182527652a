"""A moment for a program to log the step that it has just saved, before it is ended.

Some loops save a step and log it afterwards. Ended between the two they would go on behind that
step, and its row would never be logged. From outside only the files can be seen: a program is ended
when its newest checkpoint is a little old.
"""

from __future__ import annotations

import time

from runyard.node.attempt.checkpoints import saved_at

# All programs that are ended together have so long.
LONGEST_WAIT = 1.5
# After so long what was saved is logged.
_QUIET_SECONDS = 0.25
# A program that saves more often than that is ended in the middle between two saves.
_GAPS_SEEN = 3
_SHORTEST_QUIET = 0.03
_LOOK_EVERY = 0.01


def wait_for_row(folder: str, end: float) -> None:
    """Until the newest checkpoint in a folder is old enough; at most until `end`."""
    newest = saved_at(folder)
    if newest is None:
        return
    changed, gaps = min(newest, time.time()), []
    quiet = _QUIET_SECONDS
    while (now := time.time()) < end and now - changed < quiet:
        time.sleep(_LOOK_EVERY)
        latest = saved_at(folder)
        if latest == newest:
            continue
        newest = latest
        now = time.time()
        gaps.append(now - changed)
        changed = now
        if len(gaps) >= _GAPS_SEEN:
            quiet = min(_QUIET_SECONDS, max(_SHORTEST_QUIET, max(gaps) / 2))
