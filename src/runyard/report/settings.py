"""What a sweep's trials came to, setting by setting: one trial, or the mean over its seeds."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runyard.report.differences import Sample
from runyard.shapes.sweeps import Trial


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

    def costs(setting: Setting) -> tuple[float, ...]:
        return tuple(aim.cost(mean) for aim, mean in zip(aims, setting.means, strict=True))

    ordered = sorted(settings, key=costs)
    if len(aims) == 1:
        return ordered
    front: list[Setting] = []
    for setting in ordered:
        # Sorted so, only what came before can be better in all.
        if not any(_dominates(costs(other), costs(setting)) for other in front):
            front.append(setting)
    return front


def _dominates(mine: Sequence[float], theirs: Sequence[float]) -> bool:
    return mine != theirs and all(a <= b for a, b in zip(mine, theirs, strict=True))


def _setting(group: list[Trial], aims: Sequence[Aim], seed_parameter: str | None) -> Setting:
    samples = [Sample(tuple(trial["metrics"][aim.name] for trial in group)) for aim in aims]
    values = {k: v for k, v in group[0]["values"].items() if k != seed_parameter}
    means = [sample.mean for sample in samples]
    return Setting(group, values, means, [sample.deviation for sample in samples])


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
