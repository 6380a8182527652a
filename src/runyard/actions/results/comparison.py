"""Runs or sweeps side by side: settings, results, and whether they differ at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runyard.actions.results.best import best_of
from runyard.client.api import Api
from runyard.errors import NotFoundError, UsageError
from runyard.report.differences import Difference, Sample, compare
from runyard.report.sides import Side, are_repeats, differing, find_runs, side_of
from runyard.shapes.runs import Run
from runyard.shapes.sweeps import Sweep


@dataclass(frozen=True)
class CompareRequest:
    """`sides`: runs or sweeps in the user's words, the first is the baseline.

    `metrics`: those of the sweeps, or all, where none are named; `goal`: the sweeps'.
    """

    sides: tuple[str, ...]
    metrics: tuple[str, ...] = ()
    goal: str | None = None


@dataclass(frozen=True)
class Comparison:
    """By metric: a sample of each side, and how each but the first differs from the first."""

    sides: list[Side]
    settings: Sequence[tuple[str, list[Any]]]
    samples: dict[str, list[Sample]]
    differences: dict[str, list[Difference]]
    goal: str | None

    def to_json(self) -> dict[str, Any]:
        sides = [self._side_json(place, side) for place, side in enumerate(self.sides)]
        return {"sides": sides, "differing": [name for name, _ in self.settings]}

    def _side_json(self, place: int, side: Side) -> dict[str, Any]:
        metrics = {
            name: {
                "values": list(sample.values),
                "mean": sample.mean,
                "deviation": sample.deviation,
            }
            for name, samples in self.samples.items()
            for sample in [samples[place]]
        }
        less = {name: rest[place - 1].to_json() for name, rest in self.differences.items() if place}
        return {
            "label": side.label,
            "runs": [run["id"] for run in side.runs],
            "config": side.config,
            "metrics": metrics,
            "less_the_first": less if place else None,
        }


def compare_sides(api: Api, request: CompareRequest) -> Comparison:
    pairs = [_find(api, words) for words in request.sides]
    sides = [side for side, _ in pairs]
    sweeps = [sweep for _, sweep in pairs]
    metrics = _metrics(sides, request.metrics, sweeps)
    goals = {sweep["goal"] for sweep in sweeps if sweep} - {None}
    goal = request.goal or (goals.pop() if len(goals) == 1 else None)
    samples = {name: [side.sample(name) for side in sides] for name in metrics}
    differences = {name: compare(of[0], of[1:]) for name, of in samples.items()}
    return Comparison(sides, differing(sides), samples, differences, goal)


def _find(api: Api, words: str) -> tuple[Side, Sweep | None]:
    """A run, several runs, or what a sweep stands for."""
    try:
        return side_of(words, find_runs(api, words)), None
    except NotFoundError as missing:
        try:
            sweep = api.sweeps.find(words)
        except NotFoundError:
            missing.mend = "`runyard runs` and `runyard runs --sweeps` list what there is"
            raise missing from None
    label = words if words == sweep["id"] else f"{words} ({sweep['id']})"
    return side_of(label, _of_sweep(api, sweep)), sweep


def _of_sweep(api: Api, sweep: Sweep) -> list[Run]:
    ended = api.sweeps.trials(sweep["key"], state="finished")
    if not are_repeats([trial["values"] for trial in ended]):
        settings, _aims = best_of(api, sweep)
        if not settings:
            raise UsageError(
                f"sweep {sweep['id']} has several settings, and no metric says which is its best",
                mend="name the runs instead: runyard compare a1,a2 b1,b2",
            )
        ended = list(settings[0].trials)
    wanted = {trial["id"] for trial in ended}
    return [run for run in api.runs(sweep=sweep["key"]) if run["id"] in wanted]


def _metrics(
    sides: Sequence[Side], named: Sequence[str], sweeps: Sequence[Sweep | None]
) -> list[str]:
    common = set.intersection(*(side.metrics() for side in sides))
    for name in named:
        if name not in common:
            raise NotFoundError(
                f"not every run has a number named {name}",
                mend=f"they have in common: {', '.join(sorted(common)) or 'nothing'}",
            )
    if named:
        return list(dict.fromkeys(named))
    searched = {sweep["metric"] for sweep in sweeps if sweep and sweep["metric"]}
    if searched and searched <= common:
        return sorted(searched)
    return sorted(common)
