"""Show a sweep's best trials.

  runyard best                 of the newest sweep
  runyard best SWEEP -l 20     the first twenty
  runyard best SWEEP --json    for scripts

Trials of one setting with several seeds count together: mean ± standard deviation. With several
metrics, the Pareto front: the trials that no other beats in all of them. SWEEP is an id, a name, or
a part of either; without it, the newest sweep.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from runyard.cli.connect import complete_sweep, server
from runyard.cli.letters import spelled
from runyard.cli.output import duration, number, print_json, print_table, say
from runyard.cli.parser import positive
from runyard.cli.sweeps import find_sweep
from runyard.client.api import Api
from runyard.client.sweeps import Sweep, Trial
from runyard.report.settings import Aim, Setting, ranked, settings_of

_LIMIT = 10
_COUNTS = ("finished", "stopped")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    argument = parser.add_argument(
        "sweep", nargs="?", metavar="SWEEP", help="which sweep (default: the newest)"
    )
    argument.completer = complete_sweep  # type: ignore[attr-defined]
    parser.add_argument(*spelled("--limit"), type=positive, help=f"so many (default {_LIMIT})")
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
        say(f"{len(settings)} in all: -l {len(settings)} shows them")
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


def _name(one: Setting) -> str:
    name = one.trials[0]["name"]
    return name if len(one.trials) == 1 else f"{name} (+{len(one.trials) - 1})"


def _measure(mean: float, deviation: float | None) -> str:
    return number(mean) if deviation is None else f"{number(mean)} ± {number(deviation)}"
