"""For how long a process was ready to run and had no core: on a busy node not all time counts.

The kernel counts it for every thread (the second number of `schedstat`). Where it does not, nobody
is said to have waited.
"""

from __future__ import annotations

import contextlib
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_NANOSECONDS = 1e9


class RunDelay:
    """Since it was made, of the thread that waited longest."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._pids = list(pids)
        self._before = _delays(self._pids)

    def seconds(self) -> float:
        now = _delays(self._pids)
        return (
            max((now[path] - self._before.get(path, 0) for path in now), default=0) / _NANOSECONDS
        )


def _delays(pids: Iterable[int]) -> dict[str, int]:
    """Of each thread, by its file."""
    delays = {}
    for pid in pids:
        with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/task") as threads:
            for thread in threads:
                path = f"{thread.path}/schedstat"
                with contextlib.suppress(OSError, ValueError, IndexError), open(path, "rb") as file:
                    delays[path] = int(file.read().split()[1])
    return delays
