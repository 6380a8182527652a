"""What runs with several seeds have in common: mean and deviation of what they measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from runyard.client.api import Api
from runyard.shapes.sweeps import Sweep


class Spread(NamedTuple):
    """`deviation` is None where there is one value only."""

    mean: float
    deviation: float | None
    values: int


def spread_of(api: Api, sweep: Sweep) -> dict[str, Spread]:
    """Of what the finished trials of a sweep have in their summaries."""
    trials = api.sweeps.trials(sweep["key"], state="finished")
    return spread([api.run(trial["id"])["summary"] for trial in trials])


def spread(summaries: Sequence[Mapping[str, Any]]) -> dict[str, Spread]:
    """Mean, standard deviation and count of every number that the summaries hold."""
    numbers: dict[str, list[float]] = {}
    for summary in summaries:
        for name, value in summary.items():
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if is_number and math.isfinite(value) and not name.startswith(("_", "progress/")):
                numbers.setdefault(name, []).append(float(value))
    return {name: _spread(values) for name, values in numbers.items()}


def _spread(values: Sequence[float]) -> Spread:
    mean, count = sum(values) / len(values), len(values)
    if count < 2:
        return Spread(mean, None, count)
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (count - 1))
    return Spread(mean, deviation, count)
