"""Mean and deviation over seeds, of lists whose files name no metric."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runyard.report.differences import Sample
from runyard.report.sides import OWN, flat, side_of
from runyard.shapes.runs import Run
from runyard.shapes.sweeps import Trial


@dataclass(frozen=True)
class Repeats:
    """Runs of one setting; their results, metric by metric."""

    name: str
    values: Mapping[str, Any]
    runs: int
    samples: Mapping[str, Sample]

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "values": dict(self.values),
            "runs": self.runs,
            "metrics": {
                name: {"mean": sample.mean, "deviation": sample.deviation}
                for name, sample in self.samples.items()
            },
        }


def repeats_of(trials: Sequence[Trial], runs: Sequence[Run]) -> list[Repeats]:
    """Trials that finished, those together that differ in their seeds alone."""
    by_id = {run["id"]: run for run in runs}
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        if trial["state"] == "finished" and trial["id"] in by_id:
            same = json.dumps(_setting(trial["values"]), sort_keys=True, default=str)
            groups.setdefault(same, []).append(trial)
    return [_repeats(group, [by_id[trial["id"]] for trial in group]) for group in groups.values()]


def _repeats(trials: Sequence[Trial], runs: Sequence[Run]) -> Repeats:
    side = side_of(trials[0]["name"], runs)
    samples = {name: side.sample(name) for name in sorted(side.metrics())}
    return Repeats(side.label, _setting(trials[0]["values"]), len(runs), samples)


def _setting(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in flat(values).items() if name not in OWN}
