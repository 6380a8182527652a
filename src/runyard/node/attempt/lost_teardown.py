"""Programs that have done their work and cannot exit: wandb's service missed their last message.

At the end of a program that calls no `finish`, the client (seen with 0.31) sends its service the
message 'teardown', closes the connection, and waits until the service has ended. Where the service
has just written something that the client has not read, the kernel drops the message with the
connection: the service goes on, and the program never ends.

What the kernel shows then: the service listens, it has a run's file open, nobody is connected to
it, and the program that started it does nothing. It gets the message again.
"""

from __future__ import annotations

import contextlib
import os

from runyard.node.attempt.client_finish import listens_alone, parent, tell_teardown
from runyard.node.system import processes
from runyard.node.system.process_trees import TICKS, cpu_ticks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

LOOK_EVERY = 15.0
_RUN_FILE = ".wandb"
# A client is connected for as long as it has a run: one look could fall into its start.
_LOOKS = 3
# Idle threads wake up now and then.
_IDLE_TICKS = 0.01 * LOOK_EVERY * TICKS
# The real exit code is reported by the agent or `runyard run`, when the program has ended.
_EXIT_CODE = 0


class LostTeardowns:
    """`look` every `LOOK_EVERY` seconds with the processes of programs."""

    def __init__(self) -> None:
        # Of services: in how many looks they were like that, and their owner's CPU time then.
        self._seen: dict[int, tuple[int, int]] = {}

    def look(self, pids: Iterable[int]) -> list[int]:
        """The services that were sent the message now."""
        seen = {}
        for pid in pids:
            if not processes.is_client(pid) or not _is_waiting(pid):
                continue
            ticks = cpu_ticks(parent(pid))
            looks, before = self._seen.get(pid, (0, ticks))
            seen[pid] = (looks + 1 if ticks - before <= _IDLE_TICKS else 1, ticks)
        due = [pid for pid, (looks, _) in seen.items() if looks >= _LOOKS]
        # One that did not take the message, or has much to send, is looked at anew.
        self._seen = {pid: value for pid, value in seen.items() if pid not in due}
        return [pid for pid in due if tell_teardown(pid, _EXIT_CODE)]


def _is_waiting(pid: int) -> bool:
    return not _is_for_many_programs(pid) and _has_open_run(pid) and listens_alone(pid)


def _is_for_many_programs(pid: int) -> bool:
    """`wandb beta core start`: it outlives the program that started it."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        return b"--detached" in file.read()
    return True


def _has_open_run(pid: int) -> bool:
    with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/fd") as handles:
        for handle in handles:
            with contextlib.suppress(OSError):
                if os.readlink(handle.path).endswith(_RUN_FILE):
                    return True
    return False
