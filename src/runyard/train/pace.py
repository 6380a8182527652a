"""How far training is, and how long it will still take."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterable

from runyard.train import exchange
from runyard.train.frameworks import wandb_run
from runyard.train.saying import say

# The keys of the W&B summary under which the server sees it.
STEP, TOTAL, SECONDS_LEFT = "progress/step", "progress/total", "progress/seconds_left"

_MARKS = 64
# The first steps are all marked, so that one that compiles stands alone among them.
_DENSE_MARKS = 8
_LEAST_SECONDS_BETWEEN_MARKS = 0.25
# Steps that compile, or save, take many times as long as the others: they say nothing of the rest.
_ODD = 5.0


def seconds_per_step(marks: Iterable[tuple[int, float]]) -> float | None:
    """The mean time of a step from (steps done, seconds) marks, without the odd ones out."""
    intervals: list[tuple[float, int]] = []
    before: tuple[int, float] | None = None
    for step, seconds in marks:
        if before is not None and step > before[0]:
            intervals.append(((seconds - before[1]), step - before[0]))
        before = (step, seconds)
    if not intervals:
        return None
    usual = sorted(seconds / steps for seconds, steps in intervals)[len(intervals) // 2]
    regular = [(s, n) for s, n in intervals if s / n <= _ODD * usual] or intervals
    return sum(seconds for seconds, _ in regular) / sum(steps for _, steps in regular)


def in_words(seconds: float) -> str:
    """A duration as people say it: '3 h 20 min', '4 min 5 s', '12 s'."""
    whole = max(0, round(seconds))
    for unit, length, smaller, part in (
        ("d", 86400, "h", 3600),
        ("h", 3600, "min", 60),
        ("min", 60, "s", 1),
    ):
        if whole >= length:
            rest = whole % length // part
            return f"{whole // length} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{whole} s"


class Pace:
    """The marks of one loop, and what has been told of them."""

    def __init__(self, print_every: float = 30.0, summary_every: float = 10.0) -> None:
        self._marks: deque[tuple[int, float]] = deque(maxlen=_MARKS)
        self._print_every = print_every
        self._summary_every = summary_every
        self._printed = self._summarised = -math.inf
        self._longest: deque[float] = deque(maxlen=8)

    def mark(self, step: int, now: float) -> None:
        """`step` steps are done. The first call is where measuring begins: it is the first step
        that compiles."""
        if self._marks and step < self._marks[-1][0]:
            self._marks.clear()  # Another loop.
        few = len(self._marks) < _DENSE_MARKS
        if few or now - self._marks[-1][1] >= _LEAST_SECONDS_BETWEEN_MARKS:
            if self._marks and step > self._marks[-1][0]:
                self._longest.append((now - self._marks[-1][1]) / (step - self._marks[-1][0]))
            self._marks.append((step, now))

    def longest_step(self) -> float:
        """Seconds of the longest of the recent steps."""
        return max(self._longest, default=0.0)

    def seconds_left(self, step: int, total: int) -> float | None:
        """None while nothing is known."""
        pace = seconds_per_step(self._marks)
        return None if pace is None else pace * max(0, total - step)

    def tell(self, step: int, total: int, now: float) -> None:
        """Print and log it, each as often as it should be."""
        if exchange.rank() != 0:
            return
        left = self.seconds_left(step, total)
        run = wandb_run()
        if run is not None and (now - self._summarised >= self._summary_every or step == total):
            self._summarised = now
            run.summary.update({STEP: step, TOTAL: total, SECONDS_LEFT: left})
        if left is not None and (now - self._printed >= self._print_every or step == total):
            self._printed = now
            share = 100 * step // total if total else 100
            rest = "done" if step >= total else f"about {in_words(left)} left"
            say(f"step {step} of {total}, {share} %, {rest}")


_pace = Pace()


def progress(step: int, total: int) -> float | None:
    """Tell how far training is; seconds left by the pace of late, or None at the first call.

    Call it as often as you like: it prints every half minute, and puts `progress/step`,
    `progress/total` and `progress/seconds_left` into the W&B run's summary, where the server reads
    them. `train.steps` calls it for you.
    """
    now = time.monotonic()
    _pace.mark(step, now)
    _pace.tell(step, total, now)
    return _pace.seconds_left(step, total)
