"""How long each kind of change keeps the writer, and how long changes wait for their turn.

All changes go through one thread: one that takes long makes every program that logs wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter, thread_time


@dataclass
class Times:
    """Of one kind of change, in seconds.

    `longest_cpu` is the most that one change computed; the rest of a change's time it waits, for
    the disk or for other threads of the server. `longest_wait` is before its turn.
    """

    count: int = 0
    seconds: float = 0.0
    longest: float = 0.0
    longest_cpu: float = 0.0
    longest_wait: float = 0.0


class WriterTimes:
    """The writer measures, everybody may read."""

    def __init__(self) -> None:
        self._kinds: dict[str, Times] = {}

    def items(self) -> list[tuple[str, Times]]:
        """The kinds of changes by name, the one with the longest change first."""
        return sorted(self._kinds.copy().items(), key=lambda item: -item[1].longest)

    @contextmanager
    def measure(self, kind: str, waiting_since: float | None = None) -> Iterator[None]:
        began, cpu = perf_counter(), thread_time()
        try:
            yield
        finally:
            seconds, computed = perf_counter() - began, thread_time() - cpu
            times = self._kinds.setdefault(kind, Times())
            times.count += 1
            times.seconds += seconds
            times.longest = max(times.longest, seconds)
            times.longest_cpu = max(times.longest_cpu, computed)
            if waiting_since is not None:
                times.longest_wait = max(times.longest_wait, began - waiting_since)
