"""How many programs share a GPU, where that is to be found out: pure decisions on what was seen.

One at first. Its speed is measured, then twice as many run, and so on, as long as all together get
more done. What counts is how much *the same* programs slow down when others come beside them, so
that a sweep whose trials differ in speed is not misled. Where programs are too short for that, one
step is taken back, and they are counted as they end. It grows until it has settled, and only ever
shrinks afterwards.
"""

from __future__ import annotations

import math

from runyard.node.devices.slot_shares import how_many_fit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# Doubling the number is to bring at least this much more; else fewer are as good, and each faster.
NEEDED_GAIN = 0.05
# A result so close to what is needed is measured again, up to so many times in all.
_UNSURE = 0.06
_MOST_WINDOWS = 3
# A program has begun to work when it has logged so often.
_WARM_BEATS = 3
_BEATS, _FEW_BEATS = 8, 3
_SECONDS, _LONG_SECONDS = 8.0, 60.0
# Programs that end too soon for a rate: so many ends, and so many for each slot.
_LEAST_ENDS, _ENDS_EACH = 8, 3


class Reading:
    """One program as it was seen: how often it has logged so far, when last, its peak memory.

    `steps` are what it has done by then: who logs every few seconds may have done more or less.
    """

    __slots__ = ("at", "beats", "steps", "token", "vram")

    def __init__(
        self, token: str, beats: int, at: float, vram: int = 0, steps: int | None = None
    ) -> None:
        self.token = token
        self.beats = beats
        self.at = at
        self.vram = vram
        self.steps = beats if steps is None else steps


class _Level:
    """What was seen since so many programs are wanted."""

    def __init__(self) -> None:
        self.full_since: float | None = None
        # When the window was opened; how often, when last and at which step each had logged.
        self.window: tuple[float, dict[str, tuple[int, float, int]]] | None = None
        # Of each window that is closed.
        self.rates: list[dict[str, float]] = []
        self.ends = 0
        self.ends_rate: float | None = None

    def mean_rates(self) -> dict[str, float]:
        """Over the windows; of programs that were there in all of them."""
        if not self.rates:
            return {}
        tokens = set.intersection(*(set(window) for window in self.rates))
        windows = self.rates if tokens else self.rates[-1:]
        names = tokens or set(windows[0])
        return {name: sum(window[name] for window in windows) / len(windows) for name in names}


class Pack:
    """One GPU. `wanted` is how many programs are to share it now; `most` what there is room for."""

    def __init__(self, most: int, report: Callable[[str], None] = lambda _line: None) -> None:
        self.most = max(1, most)
        self.wanted = 1
        self.is_settled = self.most == 1
        self.work: dict[int, float] = {}
        """By number of programs: what they got done together; one alone is 1."""
        self._report = report
        self._best = 1
        self._vram = self._total = 0
        self._others = 0
        # Of the best number so far: rates by program, and ends a second.
        self._before: tuple[dict[str, float], float | None] = ({}, None)
        self._counts_ends = False
        self._level = _Level()

    def look(
        self, now: float, readings: Sequence[Reading], memory: tuple[int, int] | None = None
    ) -> None:
        """What runs there now. `memory`: bytes in all, and those that others than these use."""
        self._vram = max([self._vram, *(reading.vram for reading in readings)])
        if memory is not None:
            self._total, self._others = memory
        if self.is_settled:
            self._keep_within_memory()
            return
        if len(readings) < self.wanted:
            self._level.window = None
            return
        if self._level.full_since is None and len(readings) == self.wanted:
            self._level.full_since = now
        if not self._counts_ends and all(reading.beats >= _WARM_BEATS for reading in readings):
            self._measure(now, readings)

    def ended(self, now: float) -> None:
        """A program has ended by itself."""
        level = self._level
        if self.is_settled or level.full_since is None:
            return
        level.ends += 1
        enough = max(_LEAST_ENDS, _ENDS_EACH * self.wanted)
        if level.ends >= enough and now > level.full_since:
            level.ends_rate = level.ends / (now - level.full_since)
            self._judge()

    def ran_out(self, together: int) -> None:
        """One of so many ran out of memory: from now on there is room for fewer."""
        self.most = max(1, min(self.most, together - 1))
        if self.wanted > self.most or not self.is_settled:
            self._settle(min(self.wanted, self.most), "one ran out of memory")

    def _measure(self, now: float, readings: Sequence[Reading]) -> None:
        seen = {reading.token: (reading.beats, reading.at, reading.steps) for reading in readings}
        if self._level.window is None or self._level.window[1].keys() != seen.keys():
            self._level.window = (now, seen)
            return
        begun, first = self._level.window
        gained = {token: seen[token][0] - first[token][0] for token in seen}
        spans = {token: seen[token][1] - first[token][1] for token in seen}
        needed = _FEW_BEATS if now - begun >= _LONG_SECONDS else _BEATS
        if now - begun < _SECONDS or min(gained.values()) < needed or min(spans.values()) <= 0:
            return
        done = {token: max(1, seen[token][2] - first[token][2]) for token in seen}
        self._level.rates.append({token: done[token] / spans[token] for token in seen})
        self._level.window = (now, seen)
        self._judge()

    def _judge(self) -> None:
        gain = self._gain()
        if gain is None:
            return
        expected = 0.0 if self.wanted == self._best else self._needed()
        is_unsure = abs(gain - 1 - expected) < _UNSURE and self.wanted > 1
        if is_unsure and self._level.rates and len(self._level.rates) < _MOST_WINDOWS:
            return
        self.work[self.wanted] = self.work.get(self._best, 1.0) * gain
        if gain < 1 + expected:
            speed = self._speed(self.wanted)
            self._settle(self._best, f"{self.wanted} did not get more done: {speed}")
            return
        self._best = self.wanted
        self._before = (self._level.mean_rates(), self._level.ends_rate)
        self._grow()

    def _needed(self) -> float:
        return NEEDED_GAIN * math.log2(self.wanted / self._best)

    def _gain(self) -> float | None:
        """What all get done together, over what the best number before did; None: not known."""
        if self.wanted == self._best:
            return 1.0
        rates, (before, ends_before) = self._level.mean_rates(), self._before
        both = [math.log(rates[token] / before[token]) for token in rates if token in before]
        if both:
            return math.exp(sum(both) / len(both)) * self.wanted / self._best
        if self._level.ends_rate is not None and ends_before is not None:
            return self._level.ends_rate / ends_before
        if rates or self._level.ends_rate is not None:
            self._count_ends()
        return None

    def _count_ends(self) -> None:
        """None of the programs before is still there: count from now on how many end, and when."""
        self._counts_ends = True
        self.wanted = self._best
        self._level = _Level()

    def _grow(self) -> None:
        following = min(2 * self.wanted, self.most, self._fitting())
        if following <= self.wanted:
            is_full = self.wanted < self.most
            why = "no more fit its memory" if is_full else "no more are allowed"
            self._settle(self.wanted, why)
            return
        self.wanted = following
        self._level = _Level()

    def _fitting(self) -> int:
        if not self._vram or not self._total:
            return self.most
        return how_many_fit(max(0, self._total - self._others), self._vram)

    def _keep_within_memory(self) -> None:
        fitting = self._fitting()
        if fitting < self.wanted:
            self._settle(fitting, "programs need more memory than before")

    def _settle(self, wanted: int, why: str) -> None:
        self.wanted, self.is_settled = wanted, True
        self._report(self._told(why))

    def _told(self, why: str) -> str:
        at_a_time = f"{self.wanted} at a time ({why})"
        if self.wanted == 1 or self.wanted not in self.work:
            return f"{at_a_time}{self._hint()}"
        return f"{at_a_time}: {self._speed(self.wanted)}{self._hint()}"

    def _speed(self, count: int) -> str:
        done = self.work[count]
        each = 100 * done / count
        return f"together {done:.1f} times what one does alone, each at {each:.0f} % of its speed"

    def _hint(self) -> str:
        """Where most of the card stays empty, a smaller one would do."""
        used = self._vram * self.wanted
        if not used or not self._total or used * 4 > self._total:
            return ""
        gib = 1 << 30
        return (
            f"; they use {used / gib:.1f} of {self._total / gib:.0f} GiB: a smaller GPU, or a "
            "slice of one, may do as well"
        )
