"""Whether one set of results is better than another: difference, interval, and both in words.

Means of few seeds, so Student's t: Welch's form, which does not believe in equal deviations; or,
where both sides ran the same seeds, the differences seed by seed. Several sides are compared with
the first one, and Holm's rule keeps the chance of any false alarm where it was.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

LEVEL = 0.95


@dataclass(frozen=True)
class Sample:
    """Results of one side: a value a run, and the seeds they had where they are known."""

    values: tuple[float, ...]
    seeds: tuple[object, ...] | None = None

    @property
    def mean(self) -> float:
        return math.fsum(self.values) / len(self.values)

    @property
    def deviation(self) -> float | None:
        return _deviation(self.values)

    def by_seed(self) -> Mapping[object, float] | None:
        """Nothing where a seed came twice: then it does not say which value belongs to which."""
        if self.seeds is None or len(set(self.seeds)) < len(self.seeds):
            return None
        return dict(zip(self.seeds, self.values, strict=True))


@dataclass(frozen=True)
class Difference:
    """A side less the first one. `low`, `high` and `chance` are missing where one run is all."""

    mean: float
    low: float | None
    high: float | None
    chance: float | None  # Of a difference this large if there were none, after Holm's rule.
    paired: bool
    pairs: int

    @property
    def is_told(self) -> bool:
        """Whether the results tell the two apart."""
        return self.chance is not None and self.chance < 1 - LEVEL

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "is_told": self.is_told}


def compare(first: Sample, others: Sequence[Sample]) -> list[Difference]:
    """Each of the others less the first."""
    return _after_holm([_difference(first, other) for other in others])


def in_words(
    label: str, first: str, difference: Difference, metric: str, *, maximize: bool | None
) -> str:
    """What the difference says, for somebody who has to decide."""
    size = f"{abs(difference.mean):.3g}"
    if difference.mean == 0 and not difference.low:
        return f"{label} and {first} have the same {metric}"
    way = "higher" if difference.mean > 0 else "lower"
    if difference.chance is None or difference.low is None or difference.high is None:
        return (
            f"{label}: {metric} is {way} than {first}'s by {size}; with one run a side "
            "nothing says whether that is chance: `runyard repeat --seeds 5` tells"
        )
    span = f"95 % interval {difference.low:.3g} to {difference.high:.3g}"
    how = f"seed by seed, {difference.pairs} pairs" if difference.paired else "Welch"
    if not difference.is_told:
        return f"{label} and {first} cannot be told apart by {metric} ({span}; {how})"
    verdict = ""
    if maximize is not None:
        verdict = ", better" if (difference.mean > 0) is maximize else ", worse"
    return f"{label}: {metric} is {way} than {first}'s by {size}{verdict} ({span}; {how})"


def _difference(first: Sample, other: Sample) -> Difference:
    mine, theirs = other.by_seed(), first.by_seed()
    if mine and theirs and set(mine) == set(theirs):
        return _paired([mine[seed] - theirs[seed] for seed in mine])
    mean = other.mean - first.mean
    spreads = [_error_of_mean(sample.values) for sample in (other, first)]
    if None in spreads:
        return Difference(mean, None, None, None, paired=False, pairs=0)
    parts = [(spread or 0.0) ** 2 for spread in spreads]
    error = math.sqrt(sum(parts))
    if error == 0:
        return _without_spread(mean, paired=False, pairs=0)
    counts = [len(sample.values) for sample in (other, first)]
    freedom = sum(parts) ** 2 / sum(
        part**2 / (count - 1) for part, count in zip(parts, counts, strict=True)
    )
    return _by_student(mean, error, freedom, paired=False, pairs=0)


def _paired(differences: list[float]) -> Difference:
    mean = math.fsum(differences) / len(differences)
    error = _error_of_mean(differences)
    if error is None:
        return Difference(mean, None, None, None, paired=True, pairs=1)
    if error == 0:
        return _without_spread(mean, paired=True, pairs=len(differences))
    return _by_student(mean, error, len(differences) - 1, paired=True, pairs=len(differences))


def _by_student(
    mean: float, error: float, freedom: float, *, paired: bool, pairs: int
) -> Difference:
    from scipy.special import stdtr, stdtrit

    reach = float(stdtrit(freedom, 0.5 + LEVEL / 2)) * error
    chance = 2 * float(stdtr(freedom, -abs(mean / error)))
    return Difference(mean, mean - reach, mean + reach, chance, paired=paired, pairs=pairs)


def _without_spread(mean: float, *, paired: bool, pairs: int) -> Difference:
    """Every run gave the same: a program that does not use its seed, or an exact result."""
    return Difference(mean, mean, mean, 1.0 if mean == 0 else 0.0, paired=paired, pairs=pairs)


def _after_holm(differences: list[Difference]) -> list[Difference]:
    tested = [
        place for place, difference in enumerate(differences) if difference.chance is not None
    ]
    tested.sort(key=lambda place: differences[place].chance or 0.0)
    corrected, so_far = list(differences), 0.0
    for rank, place in enumerate(tested):
        chance = (differences[place].chance or 0.0) * (len(tested) - rank)
        so_far = min(1.0, max(so_far, chance))
        corrected[place] = replace(differences[place], chance=so_far)
    return corrected


def _error_of_mean(values: Sequence[float]) -> float | None:
    deviation = _deviation(values)
    return None if deviation is None else deviation / math.sqrt(len(values))


def _deviation(values: Sequence[float]) -> float | None:
    if len(values) < 2:
        return None
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
