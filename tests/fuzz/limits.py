"""What one input may cost: seconds of processor time, and memory."""

from __future__ import annotations

import asyncio
import resource
import signal
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Of processor time. Beside busy neighbours a processor does less in a second: more than this is
# measured against a piece of work that takes so long on a quiet machine.
MOST_SECONDS = 1.0
_QUIET_SECONDS = 0.0155
MOST_BYTES = 96 << 20
# After so much processor time an input is given up.
_GIVE_UP_SECONDS = 20.0
_GIVE_UP_BYTES = 1 << 30
_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")


class Finding(Exception):
    """An input that must not do what it does. `kind` is the same for the same fault."""

    def __init__(self, kind: str, told: str = "") -> None:
        super().__init__(f"{kind}\n{told}" if told else kind)
        self.kind = kind


@dataclass
class Cost:
    seconds: float = 0.0
    blocked: float = 0.0
    """The event loop's longest time without a turn for others."""
    memory: int = 0

    def check(self, place: str) -> None:
        if self.seconds > MOST_SECONDS and self.seconds > MOST_SECONDS * _slowness():
            raise Finding(f"{place} takes long", f"{self.seconds:.2f} s of processor time")
        if self.blocked > MOST_SECONDS and self.blocked > MOST_SECONDS * _slowness():
            raise Finding(f"{place} stalls the event loop", f"{self.blocked:.2f} s")
        if self.memory > MOST_BYTES:
            raise Finding(f"{place} takes memory", f"{self.memory >> 20} MiB")

    def worst(self, other: Cost) -> None:
        self.seconds = max(self.seconds, other.seconds)
        self.blocked = max(self.blocked, other.blocked)
        self.memory = max(self.memory, other.memory)


def _slowness() -> float:
    """How many times longer than on a quiet machine the same work takes now."""

    def work() -> float:
        begun = time.thread_time()
        sum(number * number for number in range(200_000))
        return time.thread_time() - begun

    return max(1.0, statistics.median(work() for _ in range(9)) / _QUIET_SECONDS)


@contextmanager
def watchdog() -> Iterator[None]:
    """Gives up what never ends, or takes all memory, where it can: in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def give_up(number: int, frame: Any) -> None:
        where = frame.f_code.co_name if frame is not None else "nowhere"
        raise Finding(f"no end in {where}", f"given up after {_GIVE_UP_SECONDS} s")

    before = signal.signal(signal.SIGPROF, give_up)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    if (size := _read_status("VmSize")) is not None:
        resource.setrlimit(resource.RLIMIT_AS, (size + _GIVE_UP_BYTES, hard))
    signal.setitimer(signal.ITIMER_PROF, _GIVE_UP_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@contextmanager
def measured() -> Iterator[Cost]:
    """What is done inside, measured; the cost is known at the end."""
    cost = Cost()
    plain = asyncio.Handle._run

    def run(handle: Any) -> None:
        begun = time.thread_time()
        plain(handle)
        cost.blocked = max(cost.blocked, time.thread_time() - begun)

    asyncio.Handle._run = run  # type: ignore[method-assign, assignment]
    before, begun = _peak(reset=True), time.process_time()
    try:
        yield cost
    finally:
        cost.seconds = time.process_time() - begun
        cost.memory = max(0, _peak() - before)
        asyncio.Handle._run = plain  # type: ignore[method-assign]


def _peak(*, reset: bool = False) -> int:
    """The most memory this process has had, since the reset where the system can do that."""
    if reset:
        with suppress(OSError):
            _RESET.write_text("5")
    peak = _read_status("VmHWM")
    if peak is None:
        unit = 1 if sys.platform == "darwin" else 1 << 10
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return peak


def _read_status(name: str) -> int | None:
    """Bytes, as Linux counts them for this process."""
    try:
        line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(name))
    except (OSError, StopIteration):
        return None
    return int(line.split()[1]) << 10
