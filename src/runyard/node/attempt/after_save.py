"""A moment for a program to log the step that it has just saved, before it is stopped.

Some loops save a step and log it afterwards. Ended between the two they would go on behind that
step, and its row would never be logged. From outside only the files can be seen: a program is
stopped when its newest checkpoint is a little old. Time in which a busy machine did not let the
program run does not count.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time

from runyard.node.attempt.checkpoints import saved_at
from runyard.node.system.run_delay import RunDelay

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# All programs that are ended together have so long.
LONGEST_WAIT = 3.0
# After so long what was saved is logged.
_QUIET_SECONDS = 0.25
# On a busy machine too, if the program was not seen at it.
_OLD_SECONDS = 1.0
# A program that saves more often than that is ended in the middle between two saves.
_GAPS_SEEN = 3
_SHORTEST_QUIET = 0.03
_LOOK_EVERY = 0.01


def stop_after_row(folder: str, program: Sequence[int], clients: Iterable[int], end: float) -> None:
    """Stop the processes of a program when it has logged what it saved; at `end` in any case.

    `clients`: who takes its rows, and is not stopped.
    """
    while True:
        newest = wait_for_row(folder, [*program, *clients], end)
        send(program, signal.SIGSTOP)
        # We may have been kept waiting ourselves, while the program saved again.
        if saved_at(folder) == newest or time.time() >= end:
            return
        send(program, signal.SIGCONT)


def wait_for_row(folder: str, program: Sequence[int], end: float) -> float | None:
    """Until the newest checkpoint in a folder is old enough, at most until `end`; its time."""
    newest = saved_at(folder)
    if newest is None or time.time() - newest >= _OLD_SECONDS:
        return newest
    changed, delay, gaps = time.time(), RunDelay(program), list[float]()
    quiet = _QUIET_SECONDS
    while (now := time.time()) < end and now - changed - delay.seconds() < quiet:
        time.sleep(_LOOK_EVERY)
        latest = saved_at(folder)
        if latest == newest:
            continue
        newest = latest
        now = time.time()
        gaps.append(now - changed)
        changed, delay = now, RunDelay(program)
        if len(gaps) >= _GAPS_SEEN:
            quiet = min(_QUIET_SECONDS, max(_SHORTEST_QUIET, max(gaps) / 2))
    return newest


def send(program: Iterable[int], number: int) -> None:
    for pid in program:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
