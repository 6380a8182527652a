"""Show a sweep's best trials.

Trials of one setting with several seeds count together: mean ± standard deviation. With several
metrics, the Pareto front: the trials that no other beats in all of them. SWEEP is an id, a name, or
a part of either; without it, the newest sweep.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runyard.cli.connect import complete_sweep, server
from runyard.cli.output import duration, number, print_json, print_table, say
from runyard.cli.parser import positive
from runyard.cli.sweeps import find_sweep
from runyard.client.api import Api
from runyard.client.sweeps import Sweep, Trial

_LIMIT = 10
_COUNTS = ("finished", "stopped")


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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    argument = parser.add_argument(
        "sweep", nargs="?", metavar="SWEEP", help="which sweep (default: the newest)"
    )
    argument.completer = complete_sweep  # type: ignore[attr-defined]
    parser.add_argument("-n", "--limit", type=positive, help=f"so many (default {_LIMIT})")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    api = server()
    found = find_sweep(api, args.sweep)
    settings, aims = best_of(api, found)
    front = len(aims) > 1
    shown = settings if front and args.limit is None else settings[: args.limit or _LIMIT]
    if args.json:
        print_json(
            {"sweep": found["id"], "best": [one.to_json(aims) for one in shown], "front": front}
        )
        return 0
    if not aims:
        say(f"sweep {found['id']} has no metric to rank its trials by: `runyard runs --sweep "
            f"{found['id']}` lists them")  # fmt: skip
        return 0
    if not shown:
        say(f"no trial of sweep {found['id']} has a value of {aims[0].name} yet")
        return 0
    print_best(shown, aims)
    if front:
        say(f"the Pareto front: nothing is better than one of these in all {len(aims)} metrics")
    elif len(settings) > len(shown):
        say(f"{len(settings)} in all: -n {len(settings)} shows them")
    return 0


def best_of(api: Api, found: Sweep) -> tuple[list[Setting], list[Aim]]:
    """A sweep's settings, the best first, or its Pareto front; and what it is after."""
    from runyard.search.sweep import read_sweep

    sweep, _ = read_sweep(found["config"])
    if sweep is None or not sweep.metrics:
        return [], []
    aims = [Aim(metric.name, metric.goal == "maximize") for metric in sweep.metrics]
    if sweep.options.tasks:
        return _best_tasks(api.sweeps.trials(found["key"]), aims)
    seed_parameter = sweep.options.seed_parameter if sweep.options.seeds else None
    trials = [one for one in api.sweeps.trials(found["key"]) if one["state"] in _COUNTS]
    for trial in trials:
        # What all have in common tells nothing.
        seed = {k: v for k, v in trial["values"].items() if k == seed_parameter}
        trial["values"] = {**sweep.space.swept(trial["values"]), **seed}
    return ranked(settings_of(trials, aims, seed_parameter), aims), aims


def _best_tasks(trials: list[Trial], aims: list[Aim]) -> tuple[list[Setting], list[Aim]]:
    """Of a list of command lines: by what stands in them, those of several seeds together."""
    from runyard.config.task_list import SEED
    from runyard.search.tasks import COMMAND_LINE, NUMBER

    counted = [one for one in trials if one["state"] in _COUNTS]
    for trial in counted:
        trial["values"] = {
            name: value
            for name, value in trial["values"].items()
            if name not in (NUMBER, COMMAND_LINE)
        }
    has_seeds = any(SEED in trial["values"] for trial in counted)
    return ranked(settings_of(counted, aims, SEED if has_seeds else None), aims), aims


def print_best(settings: Sequence[Setting], aims: Sequence[Aim]) -> None:
    print_table(
        ("NAME", *(aim.name for aim in aims), "TIME", "VALUES"),
        (
            (
                _name(one),
                *map(_measure, one.means, one.deviations),
                duration(sum(trial["seconds"] for trial in one.trials) / len(one.trials)),
                values_text(one.values),
            )
            for one in settings
        ),
    )


def values_text(values: Mapping[str, Any]) -> str:
    """A trial's values in one line."""
    return "  ".join(f"{name}={number(value)}" for name, value in values.items())


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


def _name(one: Setting) -> str:
    name = one.trials[0]["name"]
    return name if len(one.trials) == 1 else f"{name} (+{len(one.trials) - 1})"


def _measure(mean: float, deviation: float | None) -> str:
    return number(mean) if deviation is None else f"{number(mean)} ± {number(deviation)}"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
