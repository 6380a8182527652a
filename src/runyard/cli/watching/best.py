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

from runyard.actions.naming import find_sweep
from runyard.actions.results.best import best_of
from runyard.cli.completers import complete_sweep
from runyard.cli.connect import server
from runyard.cli.letters import spelled
from runyard.cli.output import duration, number, print_json, print_table, say
from runyard.cli.parser import positive
from runyard.report.settings import Aim, Setting

_LIMIT = 10


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
