"""Why an attempt ended, as far as it can be seen from beside it."""

from __future__ import annotations

import contextlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

GO_ON = 75  # EX_TEMPFAIL: the program asks to be continued later.
_KILLED = (-9, 137)
_OUT_OF_MEMORY = (
    b"MemoryError",
    b"OutOfMemoryError",
    b"CUDA out of memory",
    b"RESOURCE_EXHAUSTED: Out of memory",
)
TAIL_BYTES = 4096


def cause_of(exit_code: int, tail: bytes, kernel_kills: Callable[[], bool]) -> str | None:
    """The cause in the ledger's words; None where the exit code says it all.

    `tail` is the console's end; `kernel_kills` says whether the kernel killed for memory meanwhile.
    """
    if exit_code == GO_ON:
        return "go-on"
    if exit_code in _KILLED and kernel_kills():
        return "memory"
    if exit_code > 0 and any(sign in tail for sign in _OUT_OF_MEMORY):
        return "memory"
    return None


def kills_for_memory() -> int:
    """How often the kernel killed a process of our control group for memory."""
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/self/cgroup") as file:  # noqa: PTH123
        for line in file:
            if line.startswith("0::"):
                path = line.split("::", 1)[1].strip()
                with open(f"/sys/fs/cgroup{path}/memory.events") as events:  # noqa: PTH123
                    counts = dict(event.split() for event in events)
                return int(counts.get("oom_kill", 0))
    return 0
