"""Programs that are over and wait for their wandb client for ever.

At the end of a program that calls no `finish`, the client (seen with 0.31) sends its service the
message 'teardown', closes the connection, and waits until the service has ended. Where the service
has just written something that the client has not read, the kernel drops the message with the
connection: the service goes on, and the program never ends.

The kernel shows such a service: it listens, it has a run's file open, and nobody is connected to
it. It gets the message again.
"""

from __future__ import annotations

import contextlib
import os
import time

from runyard.node.attempt.client_finish import has_no_owner, tell_teardown
from runyard.node.system import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_RUN_FILE = ".wandb"
# A client is connected for as long as it has a run. Between programs that share a service, and
# while one starts, there is a moment without.
_LOST_SECONDS = 30.0
LOOK_EVERY = 15.0
# How the program ended, whoever is beside it will know when it has.
_EXIT_CODE = 0


class LostTeardowns:
    """`look` every `LOOK_EVERY` seconds with the processes of programs."""

    def __init__(self) -> None:
        self._lost_since: dict[int, float] = {}

    def look(self, pids: Iterable[int]) -> list[int]:
        """The services that were sent their message again now."""
        now = time.monotonic()
        lost = [
            pid
            for pid in pids
            if processes.is_client(pid) and _has_open_run(pid) and has_no_owner(pid)
        ]
        self._lost_since = {pid: self._lost_since.get(pid, now) for pid in lost}
        return [
            pid
            for pid in lost
            if now - self._lost_since[pid] >= _LOST_SECONDS and tell_teardown(pid, _EXIT_CODE)
        ]


def _has_open_run(pid: int) -> bool:
    with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/fd") as handles:
        for handle in handles:
            with contextlib.suppress(OSError):
                if os.readlink(handle.path).endswith(_RUN_FILE):
                    return True
    return False
