"""How long each kind of change keeps the writer, and how long changes wait for their turn.

All changes go through one thread: one that takes long makes every program that logs wait.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter, thread_time

# On the clock, and of the thread's computing.
Moment = tuple[float, float]


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

    def note(self, kind: str, began: Moment, handed_in: float | None = None) -> None:
        """A change that began then has just ended. Costs little: every post is measured."""
        seconds, computed = perf_counter() - began[0], thread_time() - began[1]
        times = self._kinds.get(kind)
        if times is None:
            times = self._kinds[kind] = Times()
        times.count += 1
        times.seconds += seconds
        if seconds > times.longest:
            times.longest = seconds
        if computed > times.longest_cpu:
            times.longest_cpu = computed
        if handed_in is not None and began[0] - handed_in > times.longest_wait:
            times.longest_wait = began[0] - handed_in


def moment() -> Moment:
    return perf_counter(), thread_time()
