"""What a sweep's trials came to, setting by setting: one trial, or the mean over its seeds."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runyard.client.sweeps import Trial


@dataclass(frozen=True)
class Aim:
    """A metric, and which way is better."""

    name: str
    maximize: bool

    def cost(self, value: float) -> float:
        return -value if self.maximize else value


@dataclass(frozen=True)
class Setting:
    """The trials of one setting: one, or one a seed."""

    trials: Sequence[Trial]
    values: Mapping[str, Any]
    means: Sequence[float]
    deviations: Sequence[float | None]

    def to_json(self, aims: Sequence[Aim]) -> dict[str, Any]:
        return {
            "values": dict(self.values),
            "metrics": {
                aim.name: {"mean": mean, "deviation": deviation}
                for aim, mean, deviation in zip(aims, self.means, self.deviations, strict=True)
            },
            "trials": list(self.trials),
        }


def settings_of(
    trials: Iterable[Trial], aims: Sequence[Aim], seed_parameter: str | None
) -> list[Setting]:
    """Settings that have a value of every metric."""
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        if all(_is_number(trial["metrics"].get(aim.name)) for aim in aims):
            values = {k: v for k, v in trial["values"].items() if k != seed_parameter}
            same = json.dumps(values, sort_keys=True) if seed_parameter else trial["id"]
            groups.setdefault(same, []).append(trial)
    return [_setting(group, aims, seed_parameter) for group in groups.values()]


def ranked(settings: Sequence[Setting], aims: Sequence[Aim]) -> list[Setting]:
    """The best first; of several metrics the Pareto front, by the first of them."""
    if not aims:
        return []

    def costs(one: Setting) -> tuple[float, ...]:
        return tuple(aim.cost(mean) for aim, mean in zip(aims, one.means, strict=True))

    ordered = sorted(settings, key=costs)
    if len(aims) == 1:
        return ordered
    front: list[Setting] = []
    for one in ordered:
        # Sorted so, only what came before can be better in all.
        if not any(_dominates(costs(other), costs(one)) for other in front):
            front.append(one)
    return front


def _dominates(one: Sequence[float], other: Sequence[float]) -> bool:
    return one != other and all(mine <= theirs for mine, theirs in zip(one, other, strict=True))


def _setting(group: list[Trial], aims: Sequence[Aim], seed_parameter: str | None) -> Setting:
    means, deviations = list[float](), list[float | None]()
    for aim in aims:
        measured = [trial["metrics"][aim.name] for trial in group]
        mean = sum(measured) / len(measured)
        spread = sum((value - mean) ** 2 for value in measured)
        means.append(mean)
        many = len(measured) > 1
        deviations.append(math.sqrt(spread / (len(measured) - 1)) if many else None)
    values = {k: v for k, v in group[0]["values"].items() if k != seed_parameter}
    return Setting(group, values, means, deviations)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
