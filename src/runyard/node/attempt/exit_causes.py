"""Why an attempt ended, as far as it can be seen from beside it."""

from __future__ import annotations

import contextlib

from runyard.save_protocol import GO_ON

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_KILLED = (-9, 137)
_OUT_OF_MEMORY = (
    b"MemoryError",
    b"OutOfMemoryError",
    b"CUDA out of memory",
    # Where CUDA itself, and not torch's allocator, had none left: beside others on the GPU.
    b"CUDA error: out of memory",
    b"CUDA_ERROR_OUT_OF_MEMORY",
    b"CUBLAS_STATUS_ALLOC_FAILED",
    b"CUDNN_STATUS_ALLOC_FAILED",
    b"RESOURCE_EXHAUSTED: Out of memory",
    b"OOM when allocating tensor",
    b"can't allocate memory: you tried to allocate",
    b"std::bad_alloc",
)
# What `train.check_finite` raises, and what JAX and torch do when they watch for it.
_NOT_FINITE = (
    b"NotFinite:",
    b"FloatingPointError: invalid value (nan)",
    b"returned nan values in its",
)
# Whoever gave one of these to a program decided how it goes on, whatever the program says.
_SETTLED = ("stopped", "canceled", "paused", "node")
# More than the closing words of a wandb client, which come after the program's own.
TAIL_BYTES = 16384


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
    if exit_code > 0 and any(sign in tail for sign in _NOT_FINITE):
        return "nan"
    return None


def final_cause(
    exit_code: int, ending: str | None, seen: str | None, *, asked: bool, saved: bool
) -> str | None:
    """The cause that the ledger is told; None where the exit code says it all.

    `ending`: why somebody ended it, if somebody did; `seen`: what `cause_of` makes of it; `asked`:
    it left a note that it wants to go on; `saved`: it has written a checkpoint.
    """
    if ending in _SETTLED:
        return ending if exit_code != 0 or ending == "stopped" else None
    if exit_code == 0:
        return None
    if asked or seen == "go-on":
        return "go-on"
    if ending is not None or seen is not None:
        return ending or seen
    if saved and _by_signal(exit_code):
        return "cut"
    return "killed" if exit_code in _KILLED else None


def _by_signal(exit_code: int) -> bool:
    # A shell between us and the program turns a signal into 128 and its number.
    return exit_code < 0 or 128 < exit_code <= 128 + 64


def kills_for_memory() -> int:
    """How often the kernel killed a process of our control group for memory."""
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/self/cgroup") as file:
        for line in file:
            _, controllers, path = line.strip().split(":", 2)
            if not controllers:
                return _count(f"/sys/fs/cgroup{path}/memory.events")
            if controllers == "memory":  # The first version, which has a tree for each resource.
                return _count(f"/sys/fs/cgroup/memory{path}/memory.oom_control")
    return 0


def _count(path: str) -> int:
    with open(path) as events:
        counts = dict(event.split() for event in events)
    return int(counts.get("oom_kill", 0))
