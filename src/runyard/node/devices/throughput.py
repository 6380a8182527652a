"""What programs that share a GPU get done together, estimated from all that were there. Pure.

Each program has a speed of its own, and each number of programs a slow-down that all feel: the
logarithm of what was measured is the sum of the two. A program that was there with one beside it
and with seven compares the two by itself; a program that saw one number only is compared with the
others, as far as those are alike.
"""

from __future__ import annotations

import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# So many programs are remembered: what was measured long ago is measured again.
_MOST_PROGRAMS = 96
# It is fitted again when so much of what it goes by is new.
_NEWS = 0.03
# Of the fit: where a level is new, and where it only has more to go by.
_FIRST_ROUNDS, _ROUNDS = 30, 3
# Of a rate that was measured for ten seconds: its logarithm's spread.
_NOISE = 0.05
# Before anything is known: how much the speeds of a sweep's programs differ, and what that is worth
# in programs.
_SPREAD, _SPREAD_WORTH = 0.2, 2.0
_LONGEST_WEIGHT = 30.0
# A level is known when each of its programs was watched for so long.
ENOUGH_SECONDS = 6.0
_EARLIER = "an earlier sweep"


class Level:
    """So many programs at work. `work`: what they get done together; the fewest do `count`."""

    __slots__ = ("count", "programs", "seconds", "work")

    def __init__(self, count: float, work: float, seconds: float, programs: int) -> None:
        self.count = count
        self.work = work
        self.seconds = seconds
        """Of programs: four that were watched for two seconds are eight."""
        self.programs = programs


class _Cell:
    """One program at one level: steps, seconds, and seconds times programs at work."""

    __slots__ = ("crowd", "seconds", "steps")

    def __init__(self) -> None:
        self.steps = self.seconds = self.crowd = 0.0

    @property
    def rate(self) -> float:
        return math.log(self.steps / self.seconds)

    @property
    def weight(self) -> float:
        return min(self.seconds, _LONGEST_WEIGHT) / 10


class Throughput:
    def __init__(self) -> None:
        self._programs: dict[str, dict[int, _Cell]] = {}
        # Seconds that were added since the last fit, and those that it had.
        self._fresh = self._fitted = 0.0
        self._levels: list[Level] = []
        # As fitted last: the next fit begins there.
        self._slowness: dict[int, float] = {}
        self._speeds: dict[str, float] = {}
        self._spread, self._middle = _SPREAD, 0.0

    def add(self, program: str, count: float, steps: float, seconds: float) -> None:
        """A program did so many steps while so many were at work."""
        if steps <= 0 or seconds <= 0:
            return
        place = _bin(count)
        cell = self._programs.setdefault(program, {}).setdefault(place, _Cell())
        cell.steps += steps
        cell.seconds += seconds
        cell.crowd += count * seconds
        self._fresh += seconds if place in self._slowness else math.inf
        if len(self._programs) > _MOST_PROGRAMS:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        """What it alone knew of low levels is kept as fitted; the highest one is tried again."""
        oldest = next(name for name in self._programs if name != _EARLIER)
        seen = self._programs.pop(oldest)
        self._speeds.pop(oldest, None)
        left = {place for others in self._programs.values() for place in others}
        if any(place not in left and place < max(left) for place in seen):
            self.add_earlier({level.count: level.work for level in self._levels[:-1]})

    def add_earlier(self, work: Mapping[float, float]) -> None:
        """What an earlier sweep learnt counts as one more program that saw every level."""
        self._programs.pop(_EARLIER, None)
        self._speeds.pop(_EARLIER, None)
        for count, done in work.items():
            self.add(_EARLIER, count, done * ENOUGH_SECONDS, ENOUGH_SECONDS * count)

    def forget_above(self, count: float) -> None:
        """More programs than so many are measured again."""
        place = _bin(count)
        for seen in self._programs.values():
            for above in [other for other in seen if other > place]:
                del seen[above]
        self._programs = {name: seen for name, seen in self._programs.items() if seen}
        self._speeds = {name: self._speeds[name] for name in self._programs if name in self._speeds}
        self._fresh = math.inf

    def levels(self) -> list[Level]:
        """By count."""
        if self._fresh > _NEWS * self._fitted:
            self._fit()
            self._levels = self._summarise()
            self._fresh, self._fitted = 0.0, sum(level.seconds for level in self._levels)
        return self._levels

    def _summarise(self) -> list[Level]:
        levels = []
        for place in sorted(self._slowness):
            here = [seen[place] for seen in self._programs.values() if place in seen]
            seconds = sum(cell.seconds for cell in here)
            count = sum(cell.crowd for cell in here) / seconds
            done = count * math.exp(self._slowness[place])
            levels.append(Level(count, done, seconds, len(here)))
        scale = levels[0].count / levels[0].work
        for level in levels:
            level.work *= scale
        return levels

    def _fit(self) -> None:
        """The slow-down of each level, as a logarithm, and each program's own speed, by turns."""
        rates = {
            name: [(place, cell.rate, cell.weight) for place, cell in seen.items()]
            for name, seen in self._programs.items()
        }
        places = {place for seen in rates.values() for place, _, _ in seen}
        is_known = places == self._slowness.keys()
        slowness = {place: self._slowness.get(place, 0.0) for place in places}
        for _ in range(_ROUNDS if is_known else _FIRST_ROUNDS):
            sums = {place: [0.0, 0.0] for place in places}
            for name, seen in rates.items():
                # An earlier sweep's figures have another unit: no other program says what is
                # likely.
                is_alike = name != _EARLIER and bool(self._speeds)
                pull = _NOISE**2 / self._spread**2 if is_alike else 0.0
                total, weights = self._middle * pull, pull
                for place, rate, weight in seen:
                    total += weight * (rate - slowness[place])
                    weights += weight
                speed = self._speeds[name] = total / weights
                for place, rate, weight in seen:
                    sums[place][0] += weight * (rate - speed)
                    sums[place][1] += weight
            slowness = {place: total / weights for place, (total, weights) in sums.items()}
            self._look_at_speeds()
        self._slowness = slowness

    def _look_at_speeds(self) -> None:
        alike = [speed for name, speed in self._speeds.items() if name != _EARLIER]
        if alike:
            self._middle = sum(alike) / len(alike)
            away = sum((speed - self._middle) ** 2 for speed in alike)
            self._spread = math.sqrt(
                (away + _SPREAD_WORTH * _SPREAD**2) / (len(alike) + _SPREAD_WORTH)
            )

    def __contains__(self, program: str) -> bool:
        return program in self._programs


def _bin(count: float) -> int:
    """Numbers that are near each other are one level: 1, 2, 3, 4, 5-6, 7-9, 10-13, 14-18 ..."""
    return round(2 * math.log2(max(1.0, count)))
