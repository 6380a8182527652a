"""The sides of a comparison: a run, several runs, or what a sweep found, with their results."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runyard.client.api import Api
from runyard.errors import NotFoundError, UsageError
from runyard.report.differences import Sample
from runyard.shapes.runs import Run

# Where a program keeps the number that makes its repeats differ.
SEED_NAMES = ("seed", "random_seed", "rng_seed")
# And what a list of command lines has besides, for each of its own.
OWN = (*SEED_NAMES, "task", "command_line")


@dataclass(frozen=True)
class Side:
    """Runs that are repeats of one thing."""

    label: str
    runs: Sequence[Run]
    seed_name: str | None

    @property
    def config(self) -> dict[str, Any]:
        """What all of its runs have in common."""
        first, *rest = [flat(run["config"]) for run in self.runs]
        return {
            name: value
            for name, value in first.items()
            if all(name in other and other[name] == value for other in rest)
        }

    def metrics(self) -> set[str]:
        """Names of the numbers that every run has."""
        return set.intersection(*({*_numbers(run)} for run in self.runs))

    def sample(self, metric: str) -> Sample:
        values = tuple(_numbers(run)[metric] for run in self.runs)
        if self.seed_name is None:
            return Sample(values)
        return Sample(values, tuple(flat(run["config"])[self.seed_name] for run in self.runs))


def side_of(label: str, runs: Sequence[Run]) -> Side:
    """The side that these runs are."""
    if not runs:
        raise NotFoundError(
            f"{label} has no run that ended with results",
            mend="`runyard status` shows how it stands",
        )
    return Side(label, runs, _seed_name(runs))


def find_runs(api: Api, words: str) -> list[Run]:
    """`a,b,c` are runs of one side."""
    names = [name for name in words.split(",") if name]
    if not names:
        raise UsageError("a side of the comparison is empty", mend="name a run or a sweep")
    return [api.run(name) for name in names]


def differing(sides: Sequence[Side]) -> list[tuple[str, list[Any]]]:
    """Settings that are not the same everywhere, in the order of their names."""
    configs = [side.config for side in sides]
    names = sorted({name for config in configs for name in config})
    rows = [(name, [config.get(name, MISSING) for config in configs]) for name in names]
    return [(name, values) for name, values in rows if any(value != values[0] for value in values)]


class _Missing:
    """No such setting, or not the same in all runs of a side."""

    def __repr__(self) -> str:
        return "-"


MISSING = _Missing()


def flatten(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested values under names with dots; media stays one value."""
    for name, value in values.items():
        if isinstance(value, Mapping) and value and "_type" not in value:
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """Nested settings under names with dots, without W&B's own."""
    return {name: value for name, value in flatten(values) if not name.startswith("_")}


def _numbers(run: Run) -> dict[str, float]:
    return {
        name: float(value)
        for name, value in flat(run["summary"]).items()
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }


def _seed_name(runs: Iterable[Run]) -> str | None:
    configs = [flat(run["config"]) for run in runs]
    for name in SEED_NAMES:
        # A seed that is a list would not go into a table by seed.
        if all(isinstance(config.get(name), int | str) for config in configs):
            return name
    return None


def are_repeats(settings: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the values of trials differ in their seeds alone."""
    return len({_without_seeds(setting) for setting in settings}) <= 1


def _without_seeds(values: Mapping[str, Any]) -> str:
    left = {name: value for name, value in flat(values).items() if name not in OWN}
    return json.dumps(left, sort_keys=True, default=str)
