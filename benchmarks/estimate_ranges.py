"""How often a run ends within the times that were told for it, on simulated programs.

    python -m benchmarks.estimate_ranges --seeds 40-59

Six kinds of programs, ten of each, with noise; asked when 10, 20 and 40 % of the steps are done, in
the first run of a program and in one that follows an earlier run. The margins of
`runyard/train/ranges.py` were set on the seeds 0 to 19, so others are held against them.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

from runyard.gauge.estimates import past_range
from runyard.train.pace import Pace
from runyard.train.work import course_of, work_of_course, work_of_phases

STEPS = 600
EACH_KIND = 10
ASKED = (0.1, 0.2, 0.4)
Cost = Callable[[int], float]


def constant(_rng: random.Random) -> Cost:
    return lambda _step: 1.0


def filling_buffer(rng: random.Random) -> Cost:
    """Steps get slower until a buffer is full, which may be at the end only."""
    growth, full = rng.uniform(0.3, 2.0), rng.uniform(0.3, 1.0)
    return lambda step: 1 + growth * min(1.0, step / STEPS / full)


def evaluations(rng: random.Random) -> Cost:
    """Each epoch ends with an evaluation, a tenth to a half of the epoch's time."""
    epoch = STEPS // rng.randint(12, 50)
    cost = epoch * rng.uniform(0.1, 0.5)
    return lambda step: 1 + (cost if step % epoch == epoch - 1 else 0.0)


def warm_up(rng: random.Random) -> Cost:
    slow, factor = STEPS * rng.uniform(0.005, 0.05), rng.uniform(3, 10)
    return lambda step: factor if step < slow else 1.0


def noisy(rng: random.Random) -> Cost:
    """A busy machine: slow and fast minutes, not slow and fast steps."""
    sigma, stay = rng.uniform(0.2, 0.5), rng.uniform(0.8, 0.97)
    state, levels = 0.0, []
    for _ in range(STEPS):
        state = stay * state + rng.gauss(0, sigma * math.sqrt(1 - stay * stay))
        levels.append(math.exp(state))
    return lambda step: levels[step]


def schedule(rng: random.Random) -> Cost:
    """Larger batches, or longer sequences, at one to three steps of the way."""
    changes = sorted((rng.uniform(0.05, 0.95), rng.uniform(0.7, 1.8))
                     for _ in range(rng.randint(1, 3)))  # fmt: skip
    return lambda step: math.prod(by for at, by in changes if step >= at * STEPS)


KINDS = (constant, filling_buffer, evaluations, warm_up, noisy, schedule)


@dataclass(frozen=True)
class Told:
    """One estimate against the truth, seconds of the whole run."""

    kind: str
    asked: float
    again: bool
    truth: float
    expected: float
    low: float
    high: float

    @property
    def is_inside(self) -> bool:
        return self.low <= self.truth <= self.high

    @property
    def width(self) -> float:
        """Of the interval, against the truth."""
        return (self.high - self.low) / self.truth


def run(cost: Cost, seed: int, noise: float = 0.03) -> list[tuple[int, float]]:
    rng, now, marks = random.Random(seed), 0.0, [(0, 0.0)]
    for step in range(STEPS):
        now += cost(step) * math.exp(rng.gauss(0, noise))
        marks.append((step + 1, now))
    return marks


def ask(marks: list[tuple[int, float]], kind: str, course: object = None) -> Iterator[Told]:
    pace = Pace(print_every=math.inf, summary_every=math.inf)
    pace._work_total = STEPS  # No course of this machine is looked for.
    pace._work = work_of_phases(()) if course is None else work_of_course(course)  # type: ignore[arg-type]
    truth = marks[-1][1]
    for step, now in marks:
        pace.mark(step, now)
        for share in ASKED:
            if step == int(share * STEPS):
                left = pace.range_left(step, STEPS)
                assert left is not None
                expected, low, high = (now + seconds for seconds in left)
                yield Told(kind, share, course is not None, truth, expected, low, high)


def all_told(seeds: range) -> list[Told]:
    told: list[Told] = []
    for seed in seeds:
        for kind in KINDS:
            for program in range(EACH_KIND):
                name = f"{seed} {kind.__name__} {program}"
                first = run(kind(random.Random(name)), hash_of(name))
                told += ask(first, kind.__name__)
                # The same program again; a busy machine is busy at other times.
                rng = random.Random(name + " again" if kind is noisy else name)
                second = run(kind(rng), hash_of(name) + 1)
                told += ask(second, kind.__name__, course_of(first, STEPS))
    return told


def past_coverage(seeds: range) -> dict[int, float]:
    """How often the next trial is within the range that as many earlier ones tell."""
    inside: dict[int, float] = {}
    for count in (1, 2, 3, 5, 10, 20, 40):
        hits = []
        for seed in seeds:
            for program in range(60):
                rng = random.Random(f"{seed} {count} {program}")
                sigma = rng.uniform(0.02, 0.3)
                *took, truth = (rng.lognormvariate(0, sigma) for _ in range(count + 1))
                low, high = past_range(count, sum(took) / count, min(took), max(took))
                hits.append(low <= truth <= high)
        inside[count] = sum(hits) / len(hits)
    return inside


def hash_of(name: str) -> int:
    return random.Random(name).randrange(2**31)


def coverage(told: list[Told]) -> float:
    return sum(one.is_inside for one in told) / len(told)


def print_table(told: list[Told]) -> None:
    print(f"{'':<16} {'run':<7} {'inside':>7} {'median width':>13} {'median expected/truth':>22}")
    for again in (False, True):
        for kind in (*(kind.__name__ for kind in KINDS), "all"):
            chosen = [one for one in told if one.again == again and kind in (one.kind, "all")]
            width = median(one.width for one in chosen)
            ratio = median(one.expected / one.truth for one in chosen)
            name = "again" if again else "first"
            print(f"{kind:<16} {name:<7} {coverage(chosen):>7.1%} {width:>13.2f} {ratio:>22.2f}")
    for share in ASKED:
        chosen = [one for one in told if one.asked == share and not one.again]
        width = median(one.width for one in chosen)
        print(f"first runs after {share:.0%}: {coverage(chosen):.1%} inside, width {width:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="40-59")
    begin, _, end = parser.parse_args().seeds.partition("-")
    seeds = range(int(begin), int(end or begin) + 1)
    print_table(all_told(seeds))
    for count, share in past_coverage(seeds).items():
        print(f"by {count} earlier trials: {share:.1%} of the next inside")


if __name__ == "__main__":
    main()
