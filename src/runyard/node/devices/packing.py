"""How many programs share a GPU, where that is to be found out: pure decisions on what was seen.

One at first, since nobody knows what it needs. As soon as it works, others begin beside it: how
many, the driver's word on how busy the GPU is decides; while they import, the one alone is
measured. Then more follow as long as all together get more done, and it comes down to the fewest
that get nearly as much done as any number. What was measured of a program counts when it has ended,
too, and learning goes on for as long as the sweep runs.

What counts is how many are *at work*. A program that imports does not need the GPU yet: so many
more may begin as end in that time, and the GPU is not left to wait for them.
"""

from __future__ import annotations

import math

from runyard.node.devices.shared_memory import SharedMemory
from runyard.node.devices.throughput import ENOUGH_SECONDS, Throughput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from runyard.node.devices.throughput import Level

# Doubling the number is to bring at least this much more; else fewer are as good, and each faster.
NEEDED_GAIN = 0.03
# What is as good as this is not given up for fewer or for more.
_AS_GOOD = 0.97
# A program has begun to work when it has logged so often.
_WARM_BEATS = 3
# Where programs log nothing, ends are counted: so many, and so many for each slot.
_LEAST_ENDS, _ENDS_EACH = 4, 1.5
# Who has logged nothing for so long is not starting any more.
_SILENT = 60.0
# A rate between rows that are further apart is taken although programs came and went meanwhile.
_LONG = 10.0
_LAST = 16
_MOST_OVERLAP = 3.0
# From here on, starting takes a good part of a program's life.
_SLOW_START = 1.05
# A GPU that is busy for less of its time might do more, whatever was measured; after so many ends
# more programs are tried again.
_IDLE, _RETRY_AFTER = 0.85, 4


class Reading:
    """One program as it was seen: how often it has logged so far, when last, its peak memory.

    `steps` are what it has done by then: who logs every few seconds may have done more or less.
    `began`: when it was started, by the clock of `look`.
    """

    __slots__ = ("at", "beats", "began", "steps", "token", "unit", "vram")

    def __init__(
        self,
        token: str,
        beats: int,
        at: float,
        vram: int = 0,
        steps: int | None = None,
        unit: str = "rows",
        began: float | None = None,
    ) -> None:
        self.token = token
        self.beats = beats
        self.at = at
        self.vram = vram
        self.steps = beats if steps is None else steps
        self.unit = unit
        self.began = began


class _Program:
    """What is known of one that runs."""

    def __init__(self, now: float, reading: Reading) -> None:
        self.began = now if reading.began is None else reading.began
        self.unit = reading.unit
        self.warm_at: float | None = None
        self.vram = 0
        # Where the interval began that is being measured; what was at work meanwhile.
        self.mark = reading
        self.counts: list[tuple[int, bool]] = []
        # Seconds, and seconds times programs there, over its whole life.
        self.seconds = self.crowd = 0.0
        # Whether it ran out of memory the time before.
        self.is_large = False


class Pack:
    """One GPU. `wanted` is how many programs are to share it now; `most` what there is room for.

    `learnt` is what `learnt()` of an earlier sweep of the same program said.
    """

    def __init__(
        self,
        most: int,
        report: Callable[[str], None] = lambda _line: None,
        learnt: Mapping[str, Any] | None = None,
    ) -> None:
        self.most = max(1, most)
        self.wanted = 1
        self.line = ""
        """What it does now, and why."""
        self._report = report
        self._aim = 1.0
        # Steps while all are of one kind, and while one of another kind is among them.
        self._alike, self._mixed = Throughput(), Throughput()
        self._mixed_seconds = 0.0
        self._ends = Throughput()
        self._running: dict[str, _Program] = {}
        self._ended = 0
        self._logged: list[bool] = []
        self._starts: list[float] = []
        self._works: list[float] = []
        self._memory = SharedMemory(self.most)
        self._use: float | None = None
        # How busy the GPU is while as many as it aims at are at work.
        self._busy: float | None = None
        # When to try more again, in ends, and from where it did so last.
        self._retry_at, self._retry_after = _RETRY_AFTER, _RETRY_AFTER
        self._retried_from = 0.0
        # Seconds of programs. More than it has settled on that seem better: how many at least, and
        # what had been measured when they first did.
        self._measured = 0.0
        self._more: tuple[float, float] | None = None
        self._looked_at: float | None = None
        self._changed_at = 0.0
        self._told: tuple[int, int] | None = None
        self._said = ""
        if learnt is not None:
            self.learn(learnt)

    @property
    def is_settled(self) -> bool:
        """Whether it knows its number; it may still change it."""
        return bool(self.line)

    @property
    def work(self) -> dict[float, float]:
        """By number of programs at work: what they get done together; one alone is 1."""
        return {level.count: level.work for level in self._known()}

    @property
    def _steps(self) -> Throughput:
        """Of what it mostly is."""
        return self._mixed if self._mixed_seconds > 0 else self._alike

    def learn(self, learnt: Mapping[str, Any]) -> None:
        """Begin with what an earlier sweep found out."""
        work = {float(count): float(done) for count, done in learnt["work"].items()}
        for kind in [self._ends] if learnt["by"] == "ends" else [self._alike, self._mixed]:
            kind.add_earlier(work)
        self._starts, self._works = list(learnt["starts"]), list(learnt["works"])
        self._memory.peaks = [int(peak) for peak in learnt["peaks"]]
        self._memory.total = int(learnt["total"])
        self._logged = [learnt["by"] != "ends"]
        self._aim = float(learnt["aim"])
        self._decide(0.0)

    def learnt(self) -> dict[str, Any] | None:
        """For the next sweep; None before anything is known."""
        if not self.is_settled:
            return None
        return {
            "work": {f"{count:.3g}": round(done, 3) for count, done in self.work.items()},
            "by": "ends" if self._counts_ends else "steps",
            "aim": round(self._aim, 2),
            "starts": [round(seconds, 1) for seconds in self._starts],
            "works": [round(seconds, 1) for seconds in self._works],
            "peaks": self._memory.peaks or [self._peak],
            "total": self._memory.total,
        }

    def look(
        self,
        now: float,
        readings: Sequence[Reading],
        memory: tuple[int, int] | None = None,
        use: float | None = None,
    ) -> None:
        """What runs there now. `memory`: bytes in all, and those that others than these use;
        `use`: the share of the last moments in which the GPU was busy."""
        if memory is not None:
            self._memory.total, self._memory.others = memory
        if use is not None:
            self._use = use if self._use is None else (self._use + use) / 2
        here = {reading.token for reading in readings}
        for token in [token for token in self._running if token not in here]:
            self._memory.forget(self._running.pop(token))
        for reading in readings:
            self._see(now, reading)
        count = self._at_work(now)
        past = 0.0 if self._looked_at is None else now - self._looked_at
        self._looked_at = now
        is_mixed = self._memory.is_mixed(self._running.values())
        self._mixed_seconds += past * count * (1 if is_mixed else -1)
        if use is not None and not is_mixed and count >= round(self._aim):
            self._busy = use if self._busy is None else 0.8 * self._busy + 0.2 * use
        for reading in readings:
            program = self._running[reading.token]
            program.seconds += past
            program.crowd += past * len(readings)
            if program.warm_at is not None:
                self._measure(reading, program, count, is_mixed)
        self._decide(now)

    def ended(self, now: float, token: str) -> None:
        """A program has ended by itself."""
        self._ended += 1
        self._memory.count_good_end()
        program = self._running.pop(token, None)
        if program is None:
            return  # Nobody has looked at it yet.
        self._logged = [*self._logged, token in self._alike or token in self._mixed][-_LAST:]
        if program.warm_at is not None:
            self._works = [*self._works, now - program.warm_at][-_LAST:]
        life = now - program.began
        if program.seconds and life > 0:
            self._ends.add(token, program.crowd / program.seconds, 1.0, life)
            self._measured += life if self._counts_ends else 0.0
        self._memory.forget(program)
        self._try_more_again()
        self._decide(now)

    def ran_out(self, token: str, together: int) -> None:
        """One of so many ran out of memory: it begins again, when there is more for it."""
        program = self._running.pop(token, None)
        beside = self._running.values()
        self._memory.ran_out(program.vram if program else 0, beside, together)
        self.wanted = max(1, min(self.wanted, self._memory.room, self._fitting()))
        self._tell("one ran out of memory")

    def _see(self, now: float, reading: Reading) -> None:
        program = self._running.get(reading.token)
        if program is None:
            program = self._running[reading.token] = _Program(now, reading)
            self._memory.begin(program)
        program.vram = max(program.vram, reading.vram)
        if program.unit != reading.unit:  # It has begun to log: what it printed no longer counts.
            program.unit, program.warm_at = reading.unit, None
        if program.warm_at is None and reading.beats >= _WARM_BEATS:
            program.warm_at, program.mark, program.counts = now, reading, []
            self._starts = [*self._starts, now - program.began][-_LAST:]

    def _measure(self, reading: Reading, program: _Program, count: int, is_mixed: bool) -> None:
        """Add what it did since the last look at which it had done something."""
        program.counts.append((count, is_mixed))
        mark = program.mark
        span, beats = reading.at - mark.at, reading.beats - mark.beats
        if mark is reading or beats < 1 or span < 1.0 or (beats < 3 and span < _LONG):
            return
        counts, program.counts, program.mark = program.counts, [(count, is_mixed)], reading
        if len(set(counts)) == 1 or span >= _LONG:
            mean = sum(number for number, _ in counts) / len(counts)
            kind = self._mixed if any(mixed for _, mixed in counts) else self._alike
            kind.add(reading.token, mean, max(1, reading.steps - mark.steps), span)
            self._measured += span

    def _try_more_again(self) -> None:
        """Where the GPU has time to spare, what was measured of more programs may be no longer
        true. If it is, the next time comes later."""
        if self._busy is None or self._busy >= _IDLE or self._ended < self._retry_at:
            return
        levels = self._known()
        if not levels:
            return
        best = choose(levels)
        if best.count > 1.25 * self._retried_from:
            self._retry_after = _RETRY_AFTER
        if best is not levels[-1]:
            for kind in (self._alike, self._mixed, self._ends):
                kind.forget_above(best.count)
            self._retried_from, self._busy = best.count, None
            self._retry_after *= 2
        self._retry_at = self._ended + self._retry_after

    def _at_work(self, now: float) -> int:
        return sum(
            program.warm_at is not None or now - program.began > _SILENT
            for program in self._running.values()
        )

    @property
    def _counts_ends(self) -> bool:
        """Whether programs are too short, or too silent, for anything but counting their ends."""
        return bool(self._logged) and 2 * sum(self._logged) < len(self._logged)

    def _known(self) -> list[Level]:
        if self._counts_ends:
            return [
                level
                for level in self._ends.levels()
                if level.programs >= max(_LEAST_ENDS, _ENDS_EACH * level.count)
                or level.seconds == ENOUGH_SECONDS * level.count
            ]
        return [
            level
            for level in self._steps.levels()
            if level.seconds >= ENOUGH_SECONDS * level.count * 0.99
        ]

    def _decide(self, now: float) -> None:
        levels = self._known()
        aim, why = self._first(now) if not levels else self._next(levels)
        aim = self._sure(aim)
        if aim != self._aim:
            self._aim, self._changed_at = aim, now
        slots = self._slots(aim, levels)
        fitting = self._fitting()
        wanted = max(1, min(slots, self.most, self._memory.room, fitting))
        if why is None and levels and wanted < slots:
            is_full = wanted < self.most and wanted in (fitting, self._memory.room)
            why = "no more fit its memory" if is_full else "no more are allowed"
        elif self.line and fitting < min(self.wanted, slots):
            why = "programs need more memory than before"
        self.wanted = wanted
        if why is not None:
            self._tell(why)

    def _sure(self, aim: float) -> float:
        """Once it is settled, more are begun only when they have seemed better for as long as it
        takes to measure them all again: what has begun cannot be undone."""
        if not self.is_settled or aim <= self._aim:
            self._more = None
            return aim
        least, since = self._more or (aim, self._measured)
        if self._measured - since < ENOUGH_SECONDS * len(self._running):
            self._more = min(aim, least), since
            return self._aim
        self._more = None
        return min(aim, least)

    def _first(self, now: float) -> tuple[float, None]:
        """Before anything was measured: what the driver says on how busy the GPU is."""
        # Where programs start slowly, the one alone is measured while the others do.
        are_slow = bool(self._starts) and self._starts[-1] > ENOUGH_SECONDS
        if self._aim == 1 and (self._ended or are_slow):
            return _jump(self._use), None
        oldest = min((program.began for program in self._running.values()), default=now)
        is_silent = now - max(oldest, self._changed_at) > _SILENT
        if is_silent and self._use is not None and self._use < 0.6:
            return 2 * self._aim, None
        return self._aim, None

    def _next(self, levels: Sequence[Level]) -> tuple[float, str | None]:
        """How many are to be at work, and why, where that is the end of it."""
        best, top = choose(levels), levels[-1]
        if best is top:
            share = top.work / top.count
            times = 3 if share > 0.9 else 2 if share > 0.7 else 1.5
            return max(self._aim, top.count * (_jump(self._use) if top.count < 2 else times)), None
        above = next(level for level in levels if level.count > best.count)
        text = f"{round(above.count)} did not get more done: {_speed(levels, above)}"
        near = [level for level in levels if 0.8 < level.count / self._aim < 1.25]
        if near and near[0].count > best.count and near[0].work * _AS_GOOD < best.work:
            return best.count, text
        if near and near[0].work >= _AS_GOOD * best.work and near[0].count < 2 * best.count:
            return self._aim, text
        return best.count, text

    def _slots(self, aim: float, levels: Sequence[Level]) -> int:
        """How many may be there for so many at work. Where starting takes a good part of a
        program's life, a few more: they do not end one after the other."""
        overlap = self._overlap()
        extra = math.ceil(math.sqrt(aim) / 2) if overlap > _SLOW_START else 0
        slots = max(1, math.ceil(aim * overlap - 0.01)) + extra
        alone = [level.work for level in levels if abs(level.count - aim) < 0.2 * aim]
        beside = [level.work for level in levels if abs(level.count - slots) < 0.2 * slots]
        if alone and beside and max(beside) < max(alone) / overlap:
            # Waiting for a program to start costs less than working beside another.
            return max(1, round(aim))
        return slots

    def _overlap(self) -> float:
        """How many may be there for each that is at work: others import meanwhile."""
        if self._counts_ends or not self._works or not self._starts:
            return 1.0
        start, work = (sum(each) / len(each) for each in (self._starts, self._works))
        return min(_MOST_OVERLAP, 1 + start / max(work, 1e-9))

    @property
    def _peak(self) -> int:
        return self._memory.peak(self._running.values())

    def _fitting(self) -> int:
        return self._memory.fitting(self._running.values())

    def _tell(self, why: str) -> None:
        """Say what it does, where that is news."""
        levels = self._known()
        near = [level for level in levels if 0.8 < level.count / max(1.0, self._aim) < 1.25]
        compared = bool(near) and near[0].count > max(1.2, levels[0].count)
        speed = f": {_speed(levels, near[0])}" if compared else ""
        news = round(2 * math.log2(self._aim)), self._memory.room
        at_work = round(self._aim)
        more = f", {at_work} of them at work" if self.wanted > at_work + 1 else ""
        self.line = f"{self.wanted} at a time{more} ({why}){speed}{self._hint()}"
        if news != self._told and self.line != self._said:
            self._said = self.line
            self._report(self.line)
        self._told = news

    def _hint(self) -> str:
        """Where most of the card stays empty, a smaller one would do."""
        used, total = self._peak * self.wanted, self._memory.total
        if not used or not total or used * 4 > total:
            return ""
        gib = 1 << 30
        return (
            f"; they use {used / gib:.1f} of {total / gib:.0f} GiB: a smaller GPU, or a "
            "slice of one, may do as well"
        )


def choose(levels: Sequence[Level]) -> Level:
    """The fewest that get nearly as much done as any number."""
    best = levels[0]
    for level in levels[1:]:
        if level.work >= best.work * (1 + NEEDED_GAIN * math.log2(level.count / best.count)):
            best = level
    return best


def _jump(use: float | None) -> float:
    """From one to how many at once: if it keeps the GPU busy for a third of the time, there is
    room for more than three, since kernels of several programs run beside each other."""
    if use is None:
        return 4.0
    return 8.0 if use < 0.3 else 4.0 if use < 0.8 else 2.0


def _speed(levels: Sequence[Level], level: Level) -> str:
    fewest = levels[0]
    each = 100 * (level.work / level.count) / (fewest.work / fewest.count)
    if fewest.count > 1.2:
        return f"each at {each:.0f} % of its speed with {fewest.count:.0f}"
    return f"together {level.work:.1f} times what one does alone, each at {each:.0f} % of its speed"
