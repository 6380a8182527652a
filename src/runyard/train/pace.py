"""How far training is, and how long it will still take."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Sequence

from runyard.train import exchange
from runyard.train.courses import find_course, keep_course
from runyard.train.frameworks import wandb_run
from runyard.train.progress_file import ProgressFile
from runyard.train.ranges import Interval, range_of
from runyard.train.saying import say
from runyard.train.work import EVEN, ODD, RECURRING, Work, course_of, work_of_course, work_of_phases

Phases = Sequence[tuple[int, float]]

# The keys of the W&B summary under which the server sees it.
STEP, TOTAL, SECONDS_LEFT = "progress/step", "progress/total", "progress/seconds_left"

_MOST_MARKS = 128
# The first steps are all marked, so that one that compiles stands alone among them.
_DENSE_MARKS = 32
_FEW_INTERVALS = 8
_LEAST_SECONDS_BETWEEN_MARKS = 0.25


def seconds_per_step(marks: Sequence[tuple[float, float]]) -> float | None:
    """The mean time of a step of late, from (steps done, seconds) marks, without the odd ones out.

    Of late: in the second half of the time; in all of it while there are few marks.
    """
    regular = regular_intervals(marks)
    if not regular:
        return None
    middle = (marks[0][1] + marks[-1][1]) / 2
    late = [interval for interval in regular if interval[2] - interval[0] >= middle]
    used = late if len(late) >= _FEW_INTERVALS else regular
    return sum(seconds for seconds, _, _ in used) / sum(steps for _, steps, _ in used)


def regular_intervals(marks: Sequence[tuple[float, float]]) -> list[Interval]:
    """What lies between marks, without the odd ones out."""
    intervals: list[Interval] = []
    before: tuple[float, float] | None = None
    for step, at in marks:
        if before is not None and step > before[0]:
            intervals.append((at - before[1], step - before[0], at))
        before = (step, at)
    if not intervals:
        return []
    usual = sorted(seconds / steps for seconds, steps, _ in intervals)[(len(intervals) - 1) // 2]
    is_odd = [seconds / steps > ODD * usual for seconds, steps, _ in intervals]
    first = is_odd.index(False)
    recurs = sum(is_odd[first:]) >= RECURRING
    return [
        interval
        for interval, odd in zip(intervals[first:], is_odd[first:], strict=True)
        if recurs or not odd
    ]


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

    def __init__(
        self, phases: Phases = (), print_every: float = 30.0, summary_every: float = 10.0
    ) -> None:
        self.phases = tuple(phases)
        self._work, self._work_total = EVEN, -1
        self._marks: list[tuple[int, float]] = []
        self._between = _LEAST_SECONDS_BETWEEN_MARKS
        self._file = ProgressFile()
        self._print_every = print_every
        self._summary_every = summary_every
        self._printed = self._summarised = -math.inf
        self._longest: deque[float] = deque(maxlen=8)

    def mark(self, step: int, now: float) -> None:
        """`step` steps are done. The first call is where measuring begins: it is the first step
        that compiles."""
        if self._marks and step < self._marks[-1][0]:
            self._marks.clear()  # Another loop.
            self._between = _LEAST_SECONDS_BETWEEN_MARKS
        few = len(self._marks) < _DENSE_MARKS
        if few or now - self._marks[-1][1] >= self._between:
            if self._marks and step > self._marks[-1][0]:
                self._longest.append((now - self._marks[-1][1]) / (step - self._marks[-1][0]))
            self._marks.append((step, now))
            if len(self._marks) > _MOST_MARKS:
                # However long it runs: marks over all of it, further apart.
                self._marks = self._marks[::2]
                self._between *= 2

    def longest_step(self) -> float:
        """Seconds of the longest of the recent steps."""
        return max(self._longest, default=0.0)

    def seconds_left(self, step: int, total: int) -> float | None:
        """None while nothing is known."""
        left = self.range_left(step, total)
        return None if left is None else left[0]

    def range_left(self, step: int, total: int) -> tuple[float, float, float] | None:
        """Seconds left as they are expected, at least and at most; None while nothing is known."""
        work = self._work_of(total)
        marks = [(work.by(done), at) for done, at in self._marks]
        pace = seconds_per_step(marks)
        if pace is None:
            return None
        whole, done = work.by(total), work.by(step)
        rest = max(0.0, whole - done)
        expected, low, high = range_of(
            regular_intervals(marks), pace * rest, rest,
            seen=done / whole if whole else 1.0, again=work.is_known,
        )  # fmt: skip
        once = work.once_after(step) if step < total else 0.0
        return expected + once, low + once, high + once

    def _work_of(self, total: int) -> Work:
        """What a step costs: as in an earlier run of the kind, as the program says, or alike."""
        if total != self._work_total:
            course = find_course(total, self.phases)
            self._work_total = total
            self._work = work_of_phases(self.phases) if course is None else work_of_course(course)
        return self._work

    def _is_known(self, now: float) -> bool:
        """Whether an estimate is worth a line: the first steps may be slow, ours to W&B as well."""
        marks = self._marks
        return len(marks) > _FEW_INTERVALS or bool(marks and now - marks[0][1] > self._print_every)

    def tell(self, step: int, total: int, now: float) -> None:
        """Print and log it, each as often as it should be."""
        if exchange.rank() != 0:
            return
        run = wandb_run()
        is_last = step == total
        noted = self._file.is_due(step, total)
        summarised = run is not None and (now - self._summarised >= self._summary_every or is_last)
        printed = (now - self._printed >= self._print_every and self._is_known(now)) or is_last
        if not (noted or summarised or printed):
            return  # Most steps: an estimate costs as much as a small step.
        between = self.range_left(step, total)
        left = None if between is None else between[0]
        if noted:
            self._file.note(step, total, between or ())
        if run is not None and summarised:
            self._summarised = now
            run.summary.update({STEP: step, TOTAL: total, SECONDS_LEFT: left})
        if left is not None and printed:
            self._printed = now
            share = 100 * step // total if total else 100
            rest = "done" if step >= total else f"about {in_words(left)} left{_span(between)}"
            say(f"step {step} of {total}, {share} %, {rest}")
        if is_last:
            course = course_of([*self._marks, (step, now)], total)
            if course is not None:
                keep_course(course, self.phases)


def _span(between: tuple[float, float, float] | None) -> str:
    if between is None or between[2] < 60:
        return ""
    return f" ({in_words(between[1])} to {in_words(between[2])})"


_pace = Pace()


def progress(step: int, total: int, *, phases: Phases = ()) -> float | None:
    """Tell how far training is; seconds left by the pace of late, or None at the first call.

    Call it as often as you like: it prints every half minute, and puts `progress/step`,
    `progress/total` and `progress/seconds_left` into the W&B run's summary, where the server reads
    them. `train.steps` calls it for you, and takes the same `phases`: where some steps take longer
    than others, (steps, cost of one) pairs in any unit, such as `[(500, 1), (500, 4)]`.
    """
    global _pace
    if tuple(phases) != _pace.phases:
        _pace = Pace(phases)
    now = time.monotonic()
    _pace.mark(step, now)
    _pace.tell(step, total, now)
    return _pace.seconds_left(step, total)
